"""The claims of five papers as data: how each is tried at a small size, and the rule of its verdict."""
