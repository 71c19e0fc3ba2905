"""Costs of the objectives' terms: plain data, static under jit.

The scale of a pseudo-reward k, from a game to the loss. `d_k` is the distance of the game to z,
with the time factor where k has one; `P_k` is the probability that a game plays for k:

    reward_k       = a_k * scale * (d_k before the step - d_k after it)
    policy loss   += policy[k] * a_k * -(advantage of reward_k) * log pi, by V-trace; upgo[k] alike
    value loss    += baseline[k] * (G_k - V_k)^2 / 2, where G_k is the TD(lambda) return

* `a_k`, 0 or 1, is drawn per game with `P_k`: `actor.pseudo_probability` if `actor.pseudo_rewards`
  names k, else 0. The policy observes the active part of z. In the value loss a_k is only inside
  reward_k: the value learns 0 in games that do not play for k.
* `scale` is `actor.pseudo_scale`. The advantage is linear in it, so that an active reward's policy
  gradient is proportional to `policy[k] * scale`; the value loss is proportional to
  `baseline[k] * scale^2` once the values have adapted.
* `policy[k]` and `baseline[k]` are those of `RLWeights`. Runs set them to 0 for rewards that no
  game plays for (`rl_weights` of experiments), which also removes them from the compiled program.

The win-loss reward has index 0: a_0 and its scale are 1. `actor.rewards` computes reward_k,
`learner.objective` the losses.

Source: Vinyals et al. 2019, detailed architecture.
"""

import dataclasses
import math
from typing import NamedTuple

from starleague.agent.types import REWARDS, Array
from starleague.agent.vocabulary import Arguments
from starleague.learner.losses.td_lambda import TD_LAMBDA


@dataclasses.dataclass(frozen=True)
class RLWeights:
  """Costs of the RL objective's terms; the published ones by default.

  Tuples have one entry per reward, in the order of `types.REWARDS`. Costs are Python numbers: terms
  with a cost of 0 are not part of the compiled program.

  Raises:
    ValueError: a tuple has the wrong length, a cost is negative or not finite, or a lambda is
      above 1.
  """

  policy: tuple[float, ...] = (1.0, 4.0, 6.0, 6.0, 6.0)  # V-trace policy gradient
  baseline: tuple[float, ...] = (10.0, 1.0, 1.0, 1.0, 1.0)  # TD(lambda)
  upgo: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 0.0)
  entropy: float = 1e-4
  teacher_kl: float = 2e-3  # all arguments, at every step
  function_kl: float = 1e-1  # the function, early in games conditioned on z
  function_kl_seconds: float = 240.0  # game time
  td_lambda: float = TD_LAMBDA
  vtrace_lambda: float = 1.0
  clip_rho: float = 1.0  # threshold of the ratios in V-trace targets
  clip_pg_rho: float = 1.0  # threshold of the ratios of V-trace and UPGO advantages

  def __post_init__(self) -> None:
    for name, value in dataclasses.asdict(self).items():
      per_reward = name in ("policy", "baseline", "upgo")
      if per_reward and len(value) != len(REWARDS):
        raise ValueError(
          f"RLWeights.{name} has {len(value)} entries; expected {len(REWARDS)}, one for each of "
          f"{', '.join(REWARDS)}")
      for number in value if per_reward else (value,):
        if not (math.isfinite(number) and number >= 0.0):
          raise ValueError(f"RLWeights.{name} is {value}; expected finite numbers of at least 0")
      if name.endswith("lambda") and value > 1.0:
        raise ValueError(f"RLWeights.{name} is {value}; expected a number from 0 to 1")

  @property
  def uses_teacher(self) -> bool:
    """Whether a term with a cost needs the teacher's logits."""
    return self.teacher_kl > 0.0 or self.function_kl > 0.0


class Factors(NamedTuple):
  """Factors of the RL objective's costs that may change without compilation, [] float32."""

  entropy: Array  # of `RLWeights.entropy`
  pseudo: Array  # of the policy's costs of pseudo-rewards; their values keep their costs


@dataclasses.dataclass(frozen=True)
class SLWeights:
  """Costs of the supervised objective's terms; the published ones by default.

  Raises:
    ValueError: a cost is negative or not finite.
  """

  arguments: Arguments = Arguments(*[1.0] * len(Arguments._fields))
  l2: float = 1e-5  # multiplies half the sum of squares of the weights that imitation trains

  def __post_init__(self) -> None:
    for name, value in (*zip(Arguments._fields, self.arguments, strict=True), ("l2", self.l2)):
      if not (math.isfinite(value) and value >= 0.0):
        raise ValueError(f"SLWeights: {name} is {value}; expected a finite number of at least 0")
