"""Single games of Skirmish: replays, live games, and the dm_env interface."""
