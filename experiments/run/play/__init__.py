"""Single games that a user watches or plays."""
