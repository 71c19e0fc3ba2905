"""The loops of learner processes: reinforcement learning, a league's players, imitation."""
