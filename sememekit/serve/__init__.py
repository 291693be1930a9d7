"""The workbench: a local page and a REST endpoint that answer like the commands on trained runs."""
