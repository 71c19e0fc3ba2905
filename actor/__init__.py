"""What produces trajectories: environments, rewards, rollouts, the writer."""
