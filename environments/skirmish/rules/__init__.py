"""The rules of Skirmish: a pure function of a state, on which bots and replays are built."""
