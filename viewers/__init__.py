"""Pages and pictures of runs and games."""
