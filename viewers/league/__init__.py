"""The page of a league, live in the browser or as one file."""
