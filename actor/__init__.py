"""Acting: rewards, rollouts and evaluation."""
