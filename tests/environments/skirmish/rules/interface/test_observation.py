"""Observations of the mini tier: what players see, and what stays hidden."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from tests.environments.skirmish.mini_games import (
  ALL_PAIRS,
  BARRACKS,
  FUNCTION,
  GAMES,
  HALL,
  RULES,
  SCV,
  N,
  R,
  S,
  action,
  everyone,
  host,
  start,
)


def test_the_first_observation_has_its_values(game):
  observation, privileged = host(game.observe(start(game)))
  column = types.COLUMN
  # A town hall, four workers, no enemies, and all twelve patches, known from the map.
  assert (observation.entity_count == 5 + R).all()
  rows = observation.entities[0, 0]
  dense = RULES.types.index
  mineral = vocabulary.UNIT_TYPES.index("MineralField")
  np.testing.assert_array_equal(
    rows[:5 + R, column["unit_type"]], [dense[HALL]] + [dense[SCV]] * 4 + [mineral] * R)
  np.testing.assert_array_equal(rows[:5 + R, column["alliance"]], [1] * 5 + [3] * R)
  assert not rows[5 + R:].any()
  # (-6.5 + 12) * 256 / 24 = 58.67
  assert tuple(rows[0, [column["x"], column["y"]]]) == (58, 58)
  assert tuple(rows[0, [column["health"], column["health_ratio"], column["build_progress"]]]) == (
    1500, 255, 100)
  assert rows[5, column["mineral_contents"]] == 900
  assert (rows[1:5, column["order_id_0"]] == FUNCTION("Harvest_Gather_unit")).all()
  assert rows[0, column["assigned_harvesters"]] == 4 and rows[0, column["ideal_harvesters"]] == 8
  player = dict(zip(types.PLAYER_COLUMNS, observation.player[0, 0], strict=True))
  assert (player["minerals"], player["food_used"], player["food_cap"]) == (50, 4, 18)
  assert observation.unit_counts[0, 0, dense[SCV]] == 4
  assert observation.unit_counts[0, 0].sum() == 5
  assert (observation.away_race == 1).all() and (observation.home_race == 1).all()
  can = {vocabulary.FUNCTIONS.names[i]
         for i in np.flatnonzero(observation.available_actions[0, 0])}
  assert can == {"no_op", "Smart_pt", "Smart_unit", "Attack_pt", "Move_pt", "Move_unit",
                 "Stop_quick", "HoldPosition_quick", "Harvest_Gather_unit", "Train_SCV_quick"}
  visibility = observation.minimap[0, :, 1]
  assert visibility[0, 7, 7] == 2 and visibility[0, 24, 24] == 0 and visibility[1, 24, 24] == 2
  assert not privileged.cumulative_score[0, 0, types.SCORE_COLUMNS.index("spent_minerals")]


def test_observations_show_the_last_action(game):
  state = start(game)
  chosen = everyone(action("Harvest_Gather_unit", rows=[2, 3], target=6, queued=1, delay=9))
  observation, _ = host(game.observe(game.act(state, chosen, game.due(state))))
  column = types.COLUMN
  rows = observation.entities[:, 0]
  np.testing.assert_array_equal(rows[:, :5, column["was_selected"]], [[0, 0, 1, 1, 0]] * GAMES)
  np.testing.assert_array_equal(
    np.argwhere(rows[:, :, column["was_targeted"]])[:, 1], [6] * GAMES)
  assert (observation.last_queued[:, 0] == 1).all()
  assert (observation.last_repeat[:, 0] == 0).all()


def test_hidden_state_changes_no_observation(game, played):
  """Whatever the enemy does out of sight, observations and scripted actions are equal."""
  rng = np.random.default_rng(1)
  names, keys = jnp.asarray(ALL_PAIRS), jax.random.split(jax.random.key(0), (GAMES, 2))
  for state in played[1::2]:
    hidden = ~state.memory.seen[:, 0]  # of player 1's slots
    structure = np.arange(N) < S
    kinds = np.where(structure, rng.integers(0, 2, (GAMES, N)) * BARRACKS,
                     rng.integers(0, 3, (GAMES, N)))

    def put(values, new, hidden=hidden):
      values = np.array(values)
      values[:, 1] = np.where(hidden, new, values[:, 1])
      return values

    def renew(values):
      values = np.array(values)
      values[:, 1] = rng.integers(0, 4, values[:, 1].shape)
      return values

    other = state._replace(
      kind=put(state.kind, kinds), x=put(state.x, rng.uniform(-9, 9, (GAMES, N))),
      y=put(state.y, rng.uniform(-9, 9, (GAMES, N))), health=put(state.health, 30.0),
      hurt=renew(state.hurt), minerals=renew(state.minerals), queue=renew(state.queue),
      timers=renew(state.timers), cooldown=renew(state.cooldown),
      orders=jax.tree.map(renew, state.orders), trip=renew(state.trip),
      cargo=renew(state.cargo), refused=renew(state.refused),
      score=state.score._replace(collected=renew(state.score.collected)))
    for a, b in zip(jax.tree.leaves(host(game.observe(state)[0])),
                    jax.tree.leaves(host(game.observe(other)[0])), strict=True):
      np.testing.assert_array_equal(a[:, 0], b[:, 0])
    for a, b in zip(game.script(names, keys, state), game.script(names, keys, other), strict=True):
      np.testing.assert_array_equal(a[:, 0], b[:, 0])
