"""The valid values of every number of a companion system's run."""

import dataclasses
from typing import Any

from starleague.common.errors import UserError
from starleague.common.ranges import COST, COUNT, COUNT_OR_NONE, DECAY, FRACTION, POSITIVE, Range

# By field; SYSTEM.FIELD where a system differs from the others with such a field.
RANGES: dict[str, Range] = {
  # `RunOptions`.
  "seed": COUNT_OR_NONE,
  "steps": COUNT,
  "copies": COUNT,
  "workers": COUNT_OR_NONE,
  "unroll_length": COUNT,
  "period": COUNT_OR_NONE,
  "batch_size": COUNT,
  "samples_per_item": POSITIVE,
  "replay_share": DECAY,
  "replay_size": COUNT,
  "min_replay": COUNT,
  "exponent": COST,
  "lag": COUNT_OR_NONE,
  "target_period": COUNT_OR_NONE,
  "learning_rate": POSITIVE,
  "final_rate": FRACTION,
  "decay": DECAY,
  "momentum": DECAY,
  "eps": POSITIVE,
  "max_norm": COST,
  "evaluation_episodes": COUNT,
  # Systems.
  "size": COUNT,
  "lstm": COUNT,
  **{f"{system}.lstm": COUNT_OR_NONE
     for system in ("impala", "popart", "self_imitation", "relational")},
  "discount": FRACTION,
  "lambda_": FRACTION,
  "epsilon": FRACTION,
  "coma.epsilon": DECAY,
  "entropy_cost": COST,
  "baseline_cost": COST,
  "critic_cost": COST,
  "policy_cost": COST,
  "reconstruction_cost": COST,
  "kl_cost": COST,
  "prior_cost": COST,
  "return_cost": COST,
  "imitation_cost": COST,
  "imitation_value_cost": COST,
  "policy_rate": POSITIVE,
  "step_size": FRACTION,
  "burn_in": COUNT_OR_NONE,
  "n": COUNT,
  "eta": FRACTION,
  "alpha": COST,
  "latent": COUNT,
  "rows": COUNT,
  "reads": COUNT,
  "retroaction": FRACTION,
  "tau": COUNT,
  "sigma": POSITIVE,
  "slow_gradient": COST,
  "temperature": POSITIVE,
  "blocks": COUNT_OR_NONE,
  "heads": COUNT,
  "channels": COUNT,
}


def key_of(options: Any, name: str) -> str:
  """Returns the key of a field on the command line: `steps`, `impala.size`.

  Args:
    options: a `RunOptions`, or the `Config` of a system, which has the name of its module.
    name: of the field.
  """
  module = type(options).__module__.rpartition(".")[2]
  return name if module == "options" else f"{module}.{name}"


def check(options: Any) -> None:
  """Checks the numbers of options.

  Args:
    options: a `RunOptions`, or the `Config` of a system.

  Raises:
    UserError: a number is out of its range; names the key, the number and the range.
  """
  for field in dataclasses.fields(options):
    if field.type in (int, float):
      key, value = key_of(options, field.name), getattr(options, field.name)
      valid = RANGES.get(key, RANGES.get(field.name))
      assert valid is not None, f"{key} has no range"
      if value not in valid:  # NaN is in no range
        raise UserError(f"{key}: found {value}, expected a number {valid}")
