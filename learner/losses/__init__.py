"""Losses, one family a file, unbatched in rlax's manner: written for [T], vmap for more.

Per-step values come back; weights and reductions meet in `starleague.learner.objective`.
"""

from starleague.learner.losses.coma import coma_advantages, coma_loss
from starleague.learner.losses.distillation import (
  distillation_loss,
  early_game,
  multi_task_distillation_loss,
  policy_distillation_loss,
)
from starleague.learner.losses.entropy import action_entropy, entropy_loss
from starleague.learner.losses.popart import (
  PopArtState,
  popart_init,
  popart_normalise,
  popart_preserve,
  popart_statistics,
  popart_unnormalise,
  popart_update,
)
from starleague.learner.losses.r2d2 import (
  double_q_errors,
  double_q_targets,
  rescale_value,
  sequence_priority,
  unscale_value,
)
from starleague.learner.losses.self_imitation import (
  discounted_returns,
  self_imitation_loss,
  self_imitation_priority,
)
from starleague.learner.losses.supervised import (
  illegal_labels,
  masked_cross_entropy,
  supervised_loss,
)
from starleague.learner.losses.td_lambda import (
  explained_variance,
  td_lambda_loss,
  td_lambda_returns,
)
from starleague.learner.losses.upgo import upgo_returns
from starleague.learner.losses.vtrace import (
  joint_ratio,
  policy_gradient_loss,
  vtrace_advantages,
  vtrace_targets,
)

__all__ = [
  "PopArtState", "action_entropy", "coma_advantages", "coma_loss", "discounted_returns",
  "distillation_loss", "double_q_errors", "double_q_targets", "early_game", "entropy_loss",
  "explained_variance", "illegal_labels", "joint_ratio", "masked_cross_entropy",
  "multi_task_distillation_loss", "policy_distillation_loss", "policy_gradient_loss",
  "popart_init", "popart_normalise", "popart_preserve", "popart_statistics",
  "popart_unnormalise", "popart_update", "rescale_value", "self_imitation_loss",
  "self_imitation_priority", "sequence_priority", "supervised_loss", "td_lambda_loss",
  "td_lambda_returns", "unscale_value", "upgo_returns", "vtrace_advantages", "vtrace_targets",
]
