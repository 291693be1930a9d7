"""What the five papers say, as data: claims, how each is tried at a small size, and the rule that gives its verdict."""
