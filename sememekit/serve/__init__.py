"""The workbench: a local page and a REST endpoint that ask trained runs what the commands ask them."""
