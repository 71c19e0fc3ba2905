"""Configs of runs, one `get_config()` per file."""
