"""What each term of an objective costs: data, static under jit.

Source: Vinyals et al. 2019, detailed architecture.
"""

import dataclasses
import math

from starleague.agent.types import REWARDS
from starleague.agent.vocabulary import Arguments


@dataclasses.dataclass(frozen=True)
class RLWeights:
  """Costs of the terms of the RL objective; the published ones by default.

  Tuples have one entry a reward, in the order of `types.REWARDS`. Weights are Python numbers: a
  term of weight 0 is left out of the compiled program, so a run pays only for what it uses.

  Raises:
    ValueError: for a tuple of another length, a negative or infinite weight, or a lambda above 1.
  """

  policy: tuple[float, ...] = (1.0, 4.0, 6.0, 6.0, 6.0)  # V-trace policy gradient
  baseline: tuple[float, ...] = (10.0, 1.0, 1.0, 1.0, 1.0)  # TD(lambda)
  upgo: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 0.0)
  entropy: float = 1e-4
  teacher_kl: float = 2e-3  # every argument, always
  action_type_kl: float = 1e-1  # the function, early in games that z conditions
  action_type_kl_seconds: float = 240.0  # game time
  td_lambda: float = 0.8
  vtrace_lambda: float = 1.0
  clip_rho: float = 1.0  # of the targets
  clip_pg_rho: float = 1.0  # of the advantages, V-trace's and UPGO's

  def __post_init__(self):
    for name, value in dataclasses.asdict(self).items():
      per_reward = name in ("policy", "baseline", "upgo")
      if per_reward and len(value) != len(REWARDS):
        raise ValueError(
          f"RLWeights.{name} has {len(value)} entries; expected {len(REWARDS)}, one for each of "
          f"{', '.join(REWARDS)}.")
      for number in value if per_reward else (value,):
        if not (math.isfinite(number) and number >= 0.0):
          raise ValueError(f"RLWeights.{name} is {value}; expected finite numbers of at least 0.")
      if name.endswith("lambda") and value > 1.0:
        raise ValueError(f"RLWeights.{name} is {value}; expected one from 0 to 1.")

  @property
  def uses_teacher(self) -> bool:
    """Whether the objective needs the teacher's logits."""
    return self.teacher_kl > 0.0 or self.action_type_kl > 0.0


@dataclasses.dataclass(frozen=True)
class SLWeights:
  """Costs of the terms of the imitation objective; the published ones by default.

  Raises:
    ValueError: for a negative or infinite weight.
  """

  arguments: Arguments = Arguments(*[1.0] * len(Arguments._fields))
  l2: float = 1e-5  # times half the sum of squares of all parameters

  def __post_init__(self):
    for name, value in (*zip(Arguments._fields, self.arguments, strict=True), ("l2", self.l2)):
      if not (math.isfinite(value) and value >= 0.0):
        raise ValueError(f"SLWeights: {name} is {value}; expected a finite number of at least 0.")
