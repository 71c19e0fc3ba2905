"""Learning from trajectories: losses, objectives, the update, checkpoints.

The maths, `losses`, `objective` and `supervised`, imports neither Reverb nor TensorFlow.
"""

from starleague.learner.objective import rl_loss
from starleague.learner.supervised import sl_loss
from starleague.learner.weights import RLWeights, SLWeights

__all__ = ["RLWeights", "SLWeights", "rl_loss", "sl_loss"]
