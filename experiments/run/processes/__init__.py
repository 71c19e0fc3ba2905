"""The processes of a run: programs, their graph, their places, their supervision."""
