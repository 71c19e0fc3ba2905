"""Records of agent steps: what rollouts produce and the writer cuts into trajectories."""

from typing import Any, NamedTuple

from starleague.agent import types


class Records(NamedTuple):
  """Agent steps of interleaved games, [N, C, ...]: C slots at each of N consecutive moments.

  A row is one player of one game: `row` = 2 * game + player. Rollouts have N = `iterations`, C =
  `inference_batch`, and record a row at most once per moment.
  """

  row: types.Array  # int32, -1 where the slot is empty
  first: types.Array  # bool: the first observation of a game
  last: types.Array  # bool: the terminal observation, which no action follows
  # types.Step or wire.Columns; reward and discount belong to the transition into this step.
  step: Any
  core_state: types.CoreState  # before the step
