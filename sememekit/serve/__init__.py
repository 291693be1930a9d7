"""The workbench: a local page and a REST endpoint with the answers of the commands on trained runs."""
