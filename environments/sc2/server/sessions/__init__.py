"""Clients of a server: connections, matches, replays."""
