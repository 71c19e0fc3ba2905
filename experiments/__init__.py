"""Launch files, one a kind of run: `python -m starleague.experiments.NAME --help`."""
