"""The claims of five papers as data, with a small protocol for each, and the rule of the verdict."""
