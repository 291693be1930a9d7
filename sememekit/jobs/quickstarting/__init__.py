"""``quickstart``: its folder, its text and its steps."""
