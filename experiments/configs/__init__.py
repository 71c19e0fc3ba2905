"""Settings of runs, one `get_config()` a file."""
