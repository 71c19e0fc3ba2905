"""Atomic files, manifests, the SQLite database and the results file that several rooms use."""
