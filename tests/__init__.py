"""The tests: a regular package, as pgx installs one named `tests`, which would hide a namespace."""
