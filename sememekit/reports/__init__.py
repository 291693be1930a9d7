"""What is shown of a result: pages, pictures and tables."""
