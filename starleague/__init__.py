"""AlphaStar as open JAX software: the agent, its learner, its actors and its league."""

__version__ = "0.1.0"
