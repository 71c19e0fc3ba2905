"""The page, the GIF and the terminal view of a replay."""
