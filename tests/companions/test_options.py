"""Impossible options are refused by name."""

import pytest

from starleague.common.errors import UserError
from starleague.companions.options import RunOptions


@pytest.mark.parametrize("changes, message", [
  ({"steps": 0}, "steps: found 0, expected a number above 0"),
  ({"learning_rate": float("nan")}, "learning_rate: found nan, expected a number above 0"),
  ({"workers": -1}, "workers: found -1, expected a number at least 0"),
  ({"workers": 65}, "workers: found 65, expected at most the copies, 64"),
  ({"lag": -1}, "lag: found -1, expected a number at least 0"),
  ({"table": "stack"}, "table: found 'stack', expected one of fifo, uniform, prioritised"),
  ({"optimizer": "sgd"}, "optimizer: found 'sgd', expected one of adam, rmsprop"),
  ({"period": 21}, "period: found 21, expected at most the unroll_length, 20"),
  ({"replay_share": 1.0}, "replay_share: found 1.0, expected below 1"),
  ({"replay_share": 0.5, "table": "uniform"}, "with table 'uniform', which replays already"),
  ({"replay_share": 0.9, "batch_size": 2}, "leave none from the queue; raise batch_size"),
  ({"min_replay": 20000}, "min_replay: found 20000, expected at most replay_size, 10000"),
])
def test_impossible_options_are_refused(changes, message):
  with pytest.raises(UserError) as error:
    RunOptions(task="catch", **changes)
  assert message in str(error.value)


def test_sizes_that_follow_from_others():
  options = RunOptions("catch", unroll_length=40, period=20, batch_size=32, replay_share=0.25)
  assert (options.unroll_period, options.fresh_size, options.steps_per_iteration) == (20, 24, 1280)
