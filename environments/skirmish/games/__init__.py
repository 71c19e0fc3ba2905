"""Single games of Skirmish: live games, replays and the dm_env interface."""
