"""What is learned from trajectories: losses, the objective, the update, replay, checkpoints.

The maths, `losses` and `objective`, imports JAX and nothing of Reverb or TensorFlow.
"""

from starleague.learner.objective import rl_loss, sl_loss
from starleague.learner.weights import RLWeights, SLWeights

__all__ = ["RLWeights", "SLWeights", "rl_loss", "sl_loss"]
