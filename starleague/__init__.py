"""AlphaStar as open JAX software: the agent, its learner, its actors and its league."""
