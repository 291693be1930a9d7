"""Views of results: pages, pictures and tables."""
