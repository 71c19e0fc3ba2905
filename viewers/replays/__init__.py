"""The page of decoded replays."""
