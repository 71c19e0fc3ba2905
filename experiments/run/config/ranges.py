"""The valid values of every number of a run's config."""

import math
from typing import NamedTuple

from starleague.agent.vocabulary import Arguments

MAX_INT = 2**31 - 1  # seeds and counts are int32 on devices


class Range(NamedTuple):
  """The valid values of a config key."""

  low: float
  high: float
  low_open: bool = False  # low itself is invalid
  high_open: bool = False

  def __contains__(self, value: object) -> bool:
    assert isinstance(value, int | float)
    return ((self.low < value if self.low_open else self.low <= value)
            and (value < self.high if self.high_open else value <= self.high))

  def __str__(self) -> str:
    if self.high == math.inf:
      return f"{'above' if self.low_open else 'at least'} {self.low:g}"
    high = f"{self.high:.0f}" if self.high == MAX_INT else f"{self.high:g}"
    return f"in {'(' if self.low_open else '['}{self.low:g}, {high}{')' if self.high_open else ']'}"


_POSITIVE = Range(0.0, math.inf, low_open=True, high_open=True)
_COST = Range(0.0, math.inf, high_open=True)
_COUNT = Range(1, MAX_INT)
_MOST_SECONDS = 1e9  # 30 years; clocks overflow later
SECONDS = Range(0.0, _MOST_SECONDS, low_open=True)
SECONDS_OR_NONE = Range(0.0, _MOST_SECONDS)
_FRACTION = Range(0.0, 1.0)
_DECAY = Range(0.0, 1.0, high_open=True)
# Valid values of every number of a config, without those of a game's own group.
RANGES = {
  "seed": Range(0, MAX_INT),
  "seconds": SECONDS,
  "unroll_length": _COUNT,
  "environment.mmr": Range(0, 2**15 - 1),
  "actor.processes": _COUNT,
  "actor.threads": Range(0, MAX_INT),
  "actor.niceness": Range(0, 19),
  "actor.games": _COUNT,
  "actor.inference_batch": _COUNT,
  "actor.iterations": _COUNT,
  "actor.self_play": _FRACTION,
  "actor.uniform": _FRACTION,
  "actor.draw_reward": Range(-1.0, 1.0),
  "actor.parameter_interval_s": SECONDS,
  "actor.pseudo_probability": _FRACTION,
  "actor.pseudo_scale": _COST,
  "league.seconds": SECONDS,
  "league.main_updates": Range(0, MAX_INT),
  "league.snapshot_steps": _POSITIVE,
  "league.timeout_steps": _POSITIVE,
  "league.places": Range(2, MAX_INT),
  "league.population_steps": _POSITIVE,
  "league.games": _COUNT,
  "league.chunk": _COUNT,
  "league.exploiter_minimax": _COST,
  "league.evaluators": Range(0, MAX_INT),
  "league.evaluator_niceness": Range(0, 19),
  "league.evaluation_games": _COUNT,
  "league.lease_s": Range(1.0, _MOST_SECONDS),
  "cluster.learner_hosts": _COUNT,
  "data.min_size": _COUNT,
  "data.tolerance": _COUNT,
  "data.samples_per_item": _COUNT,
  "data.timeout_s": SECONDS,
  "demonstrations.games": _COUNT,
  "imitation.batch_size": _COUNT,
  "imitation.unroll_length": _COUNT,
  "imitation.accumulate": _COUNT,
  "imitation.learning_rate": _POSITIVE,
  "imitation.warm_up": _FRACTION,
  "imitation.final_rate": _FRACTION,
  "imitation.b1": _DECAY,
  "imitation.b2": _DECAY,
  "imitation.eps": _POSITIVE,
  "imitation.max_norm": _COST,
  "imitation.l2": _COST,
  **{f"imitation.costs.{name}": _COST for name in Arguments._fields},
  "imitation.keep_build_order": _FRACTION,
  "imitation.keep_cumulative": _FRACTION,
  "imitation.seconds": SECONDS_OR_NONE,
  "imitation.epochs": Range(0, MAX_INT),
  "imitation.fine_tune_mmr": Range(0, 2**15 - 1),  # int16 in observations
  "imitation.fine_tune_learning_rate": _POSITIVE,
  "imitation.fine_tune_seconds": SECONDS_OR_NONE,
  "imitation.fine_tune_epochs": Range(0, MAX_INT),
  "imitation.held_out": Range(0.0, 1.0, low_open=True, high_open=True),
  "imitation.evaluate_interval_s": SECONDS,
  "imitation.checkpoint_interval_s": SECONDS,
  "offline.updates": _COUNT,
  "offline.policy_cost": _COST,
  "offline.value_cost": _COST,
  "offline.kl_cost": _COST,
  "offline.emphatic_steps": Range(1, 10_000),
  "learner.batch_size": _COUNT,
  "learner.accumulate": _COUNT,
  "learner.learning_rate": _POSITIVE,
  "learner.final_rate": _FRACTION,
  "learner.b1": _DECAY,
  "learner.b2": _DECAY,
  "learner.eps": _POSITIVE,
  "learner.max_norm": _COST,
  "learner.td_lambda": _FRACTION,
  "learner.vtrace_lambda": _FRACTION,
  "learner.policy_cost": _COST,
  "learner.baseline_cost": _COST,
  "learner.upgo_cost": _COST,
  "learner.entropy": _COST,
  "learner.teacher_kl": _COST,
  "learner.updates": Range(0, MAX_INT),
  "learner.function_kl": _COST,
  "learner.value_warm_up": Range(0, MAX_INT),
  "learner.publish_interval_s": SECONDS,
  "learner.checkpoint_interval_s": SECONDS,
  "learner.log_interval_s": SECONDS,
  "learner.keep_last": _COUNT,
  "learner.keep_every": Range(0, MAX_INT),
  "learner.max_skipped": _COUNT,
  "evaluation.games": Range(2, MAX_INT),
  "evaluation.temperature": Range(0.01, 100.0),
}
