"""Trajectories and parameters between processes, through Reverb."""
