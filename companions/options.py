"""The options of a run of a companion system, and the ranges of all numbers of a run."""

import dataclasses
from typing import Any

import numpy as np
import optax

from starleague.common.errors import UserError
from starleague.common.ranges import COST, COUNT, COUNT_OR_NONE, DECAY, FRACTION, POSITIVE, Range
from starleague.data.reverb import server

ADAM, RMSPROP = OPTIMIZERS = ("adam", "rmsprop")
# Valid values of every number of a run, by field; SYSTEM.FIELD where a system differs from others.
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


def valid_range(key: str) -> Range:
  """Returns the valid values of a number by its key: `steps`, `impala.size`."""
  found = RANGES.get(key, RANGES.get(key.rpartition(".")[2]))
  assert found is not None, f"{key} has no range"
  return found


def check_numbers(options: Any) -> None:
  """Checks the numbers of options.

  Args:
    options: a `RunOptions`, or the `Config` of a system.

  Raises:
    UserError: a number is out of its range; names the key, the number and the range.
  """
  for field in dataclasses.fields(options):
    if field.type in (int, float):
      key, value = key_of(options, field.name), getattr(options, field.name)
      valid = valid_range(key)
      if value not in valid:  # NaN is in no range
        raise UserError(f"{key}: found {value}, expected a number {valid}")


@dataclasses.dataclass(frozen=True)
class RunOptions:
  """How a system is trained. All counts of steps are steps of the task, of all copies together.

  Attributes:
    task: name of the task; see `tasks.registry`.
    seed: of parameters, copies and exploration, and of what all episodes of a task share.
    steps: that the run trains for.
    copies: of the task, which act together.
    workers: processes that step the copies of a task on the host, and that the inference service
      acts for; 0: the training process steps them.
    unroll_length: T, steps of an unroll.
    period: steps between the starts of consecutive unrolls of a copy; 0: T.
    batch_size: unrolls of an update.
    table: "fifo": every unroll is used once, in order; "uniform" or "prioritised": replay.
    samples_per_item: uses of an unroll on average, of tables with replay.
    replay_share: share of a batch from a second table, where the first is "fifo".
    replay_table: of the second table: "uniform" or "prioritised".
    replay_size: unrolls that a table with replay holds.
    min_replay: unrolls in it before the first update.
    exponent: of priorities.
    lag: updates by which the acting parameters are behind the learner's, at least.
    target_period: updates between copies of the parameters to the target network; 0: no target.
    optimizer: "adam" or "rmsprop".
    learning_rate: at the start.
    final_rate: over the learning rate, at the end; the rate falls linearly.
    decay: of the mean of squared gradients.
    momentum: of Adam's mean gradient, or of RMSProp.
    eps: added to the mean of squared gradients, inside the root, of RMSProp; to the root, of Adam.
    max_norm: to which the gradient is clipped; 0: it is not.
    evaluation_episodes: at the end, at least.
    evaluation_tasks: further tasks that the evaluation plays, `+` between their names.
  """

  task: str
  seed: int = 0
  steps: int = 1_000_000
  copies: int = 64
  workers: int = 0
  unroll_length: int = 20
  period: int = 0
  batch_size: int = 32
  table: str = server.FIFO
  samples_per_item: float = 1.0
  replay_share: float = 0.0
  replay_table: str = server.UNIFORM
  replay_size: int = 10_000
  min_replay: int = 1
  exponent: float = 0.9
  lag: int = 0
  target_period: int = 0
  optimizer: str = ADAM
  learning_rate: float = 1e-3
  final_rate: float = 1.0
  decay: float = 0.99
  momentum: float = 0.0
  eps: float = 1e-5
  max_norm: float = 40.0
  evaluation_episodes: int = 100
  evaluation_tasks: str = ""

  def __post_init__(self) -> None:
    """Checks the options, also against each other; UserError names the option."""
    check_numbers(self)
    replays = (server.UNIFORM, server.PRIORITISED)
    for name, expected in (("table", (server.FIFO, *replays)), ("replay_table", replays),
                           ("optimizer", OPTIMIZERS)):
      if getattr(self, name) not in expected:
        raise UserError(f"{name}: found {getattr(self, name)!r}, expected one of "
                        f"{', '.join(expected)}")
    if self.period > self.unroll_length:
      raise UserError(f"period: found {self.period}, expected at most the unroll_length, "
                      f"{self.unroll_length}")
    if self.replay_share and self.table != server.FIFO:
      raise UserError(f"replay_share: found {self.replay_share} with table {self.table!r}, which "
                      f"replays already; expected 0, or table {server.FIFO!r}")
    if self.samples_per_item != 1.0 and self.table == server.FIFO:
      raise UserError(f"samples_per_item: found {self.samples_per_item} with table "
                      f"{server.FIFO!r}, which gives each unroll once; expected 1, or a table with "
                      "replay")
    if self.fresh_size < 1:
      raise UserError(f"batch_size: {self.batch_size} unrolls with a replay_share of "
                      f"{self.replay_share} leave none from the queue; raise batch_size")
    if self.replay_share and self.fresh_size == self.batch_size:
      raise UserError(f"batch_size: {self.batch_size} unrolls with a replay_share of "
                      f"{self.replay_share} leave none for the replay; raise batch_size")
    if self.workers > self.copies:
      raise UserError(f"workers: found {self.workers}, expected at most the copies, {self.copies}")
    if self.min_replay > self.replay_size:
      raise UserError(f"min_replay: found {self.min_replay}, expected at most replay_size, "
                      f"{self.replay_size}")

  @property
  def unroll_period(self) -> int:
    """Steps between the starts of consecutive unrolls of a copy."""
    return self.period or self.unroll_length

  @property
  def fresh_size(self) -> int:
    """Unrolls of a batch that come from the first table."""
    return self.batch_size - round(self.batch_size * self.replay_share)

  @property
  def iterations(self) -> int:
    """Steps that each copy takes between two rounds of updates."""
    return self.unroll_period

  @property
  def steps_per_iteration(self) -> int:
    """Steps of all copies between two rounds of updates."""
    return self.iterations * self.copies


def make_optimizer(options: RunOptions,
                   factors: np.ndarray | None = None) -> optax.GradientTransformation:
  """Returns the optimizer of the options, with an adjustable learning rate.

  Args:
    options: of the run.
    factors: [n, 128] float32, of the learning rate, see `learner.flat.repeat`. None: 1 for all.
  """
  scale = [] if factors is None else [optax.stateless(lambda updates, _: updates * factors)]

  def build(learning_rate: float) -> optax.GradientTransformation:
    if options.optimizer == RMSPROP:
      rule = optax.rmsprop(learning_rate, options.decay, options.eps,
                           momentum=options.momentum or None)
    else:
      rule = optax.adam(learning_rate, b1=options.momentum, b2=options.decay, eps=options.eps)
    clip = [optax.clip_by_global_norm(options.max_norm)] if options.max_norm else []
    return optax.chain(*clip, rule, *scale)

  return optax.inject_hyperparams(build)(learning_rate=options.learning_rate)
