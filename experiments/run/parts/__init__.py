"""What a run is made of: agent, game, weights, z."""
