"""One plain function a subcommand, callable from a notebook; none of them prints."""
