"""Losses, one family per file, unbatched like rlax's: written for [T], `vmap` them for more.

They return per-step values; weights and reductions are in `starleague.learner.objective`.

Returns and V-trace are scans over time with all arithmetic inside the scan. vmapped with
`in_axes=1, out_axes=1` they become one scan of [T, B] arrays without a transposition. Outside a
scan, `vmap` would transpose every operation on a batched and an unbatched [T] array; inside, inputs
without the mapped axis are broadcast one time step at a time. Nest vmaps for more axes, with B
innermost and last, as XLA vectorises over the last axis.
"""

from starleague.learner.losses.coma import coma_advantages, coma_loss
from starleague.learner.losses.distillation import (
  distillation_loss,
  early_game,
  multi_task_distillation_loss,
  policy_distillation_loss,
)
from starleague.learner.losses.emphatic import EmphaticState, emphatic_init, emphatic_weights
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
  "EmphaticState", "PopArtState", "action_entropy", "coma_advantages", "coma_loss",
  "discounted_returns", "distillation_loss", "double_q_errors", "double_q_targets", "early_game",
  "emphatic_init", "emphatic_weights", "entropy_loss", "explained_variance", "illegal_labels",
  "joint_ratio", "masked_cross_entropy", "multi_task_distillation_loss", "policy_distillation_loss",
  "policy_gradient_loss", "popart_init", "popart_normalise", "popart_preserve", "popart_statistics",
  "popart_unnormalise", "popart_update", "rescale_value", "self_imitation_loss",
  "self_imitation_priority", "sequence_priority", "supervised_loss", "td_lambda_loss",
  "td_lambda_returns", "unscale_value", "upgo_returns", "vtrace_advantages", "vtrace_targets",
]
