"""The config of a run and the command line."""
