"""What people look at: reports, replays, games in the browser, tables of results."""
