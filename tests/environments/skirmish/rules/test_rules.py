"""Rules of the mini tier against numbers computed by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.environments.skirmish import make_skirmish
from starleague.environments.skirmish.rules.step import combat
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.mini_games import (
  BARRACKS,
  FACTORY,
  FUNCTION,
  GAMES,
  HALL,
  LOCAL,
  MARINE,
  RULES,
  SCV,
  S,
  action,
  actions,
  everyone,
  host,
  start,
)


def test_tables_have_the_games_numbers():
  types_ = RULES.types
  assert (types_.health[MARINE], types_.health[HALL]) == (45, 1500)
  # 6, minus armour; 10, and 10 more against armoured; 8, and 6 more against light.
  marauder, hellion = LOCAL["Marauder"], LOCAL["Hellion"]
  attackers = jnp.array([[MARINE, marauder, hellion]] * 2)
  targets = jnp.array([[MARINE, marauder, hellion, BARRACKS]] * 2)
  damage = combat.volley(
    RULES, types_.ground, attackers, None, targets, jnp.asarray(types_.armour)[targets])
  np.testing.assert_array_equal(damage[0], [[6, 5, 6, 5], [10, 19, 10, 19], [14, 7, 14, 7]])
  assert RULES.products.loops[MARINE] == 134  # 400 loops at tempo 3
  assert types_.speed[MARINE] * 4 == 2.25  # four ticks are a second
  np.testing.assert_array_equal(np.flatnonzero(types_.fighter), [MARINE, marauder, hellion])


def test_capabilities_are_those_of_the_vocabulary():
  functions, types_ = RULES.functions, RULES.types
  allowed = vocabulary.CAPABLE[functions.index][:, types_.index]
  assert not (functions.capable & ~allowed)[1:].any()
  assert functions.capable[1:].any(axis=1).all()


def test_shapes_and_dtypes_follow_the_specs(game):
  state = start(game)
  observation, privileged = game.observe(state)
  for found, spec in zip(
      jax.tree.leaves((observation, privileged)),
      jax.tree.leaves((types.observation_spec(64, 32), types.privileged_spec())), strict=True):
    assert (found.shape, found.dtype) == ((GAMES, 2, *spec.shape), spec.dtype)
  later = game.advance(game.act(state, actions({}), game.due(state)))
  assert jax.tree.map(jnp.shape, later) == jax.tree.map(jnp.shape, state)
  assert [x.dtype for x in jax.tree.leaves(later)] == [x.dtype for x in jax.tree.leaves(state)]


def test_unsuitable_sizes_are_rejected():
  with pytest.raises(ValueError, match="max_entities is 32, but a player may see 60"):
    make_skirmish(max_entities=32)
  with pytest.raises(ValueError, match="unknown tier 'huge'"):
    make_skirmish("huge")
  with pytest.raises(ValueError, match="multiple of 32"):
    make_skirmish(map_size=40)


def test_workers_deliver_five_minerals_every_forty_loops(game):
  state = start(game)
  for _ in range(20):
    state = game.advance(state)
  before = np.asarray(state.minerals)
  for _ in range(50):
    state = game.advance(state)
  np.testing.assert_array_equal(np.asarray(state.minerals) - before, 4 * 10 * 5)


def test_training_has_its_price_and_time_and_new_workers_mine(game):
  state = start(game)
  train = everyone(action("Train_SCV_quick", rows=[0], repeat=2))
  state = game.advance(game.act(state, train, game.due(state)))
  # 50 minerals pay for one of three.
  np.testing.assert_array_equal(np.asarray(state.queue)[:, 0, 0], [[SCV, 0, 0, 0, 0]] * GAMES)
  np.testing.assert_array_equal(np.asarray(state.minerals)[:, 0], 0)
  # The step of the order counts: 272 loops at tempo 3 are 91, 12 steps.
  for _ in range(10):
    state = game.advance(state)
  assert (np.sum(np.asarray(state.kind) == SCV, axis=2) == 4).all()
  state = game.advance(state)
  np.testing.assert_array_equal(np.sum(np.asarray(state.kind) == SCV, axis=2)[:, 0], 5)
  np.testing.assert_array_equal(np.asarray(state.orders.verb)[:, 0, 4], constants.GATHER)


def test_building_has_its_price_and_time_and_takes_one_worker(game):
  state = start(game)
  state = state._replace(minerals=state.minerals + 250)
  site = (-1.5, -7.5)
  build = everyone(action("Build_Barracks_pt", rows=[1, 2], x=site[0], y=site[1]))
  state = game.advance(game.act(state, build, game.due(state)))
  np.testing.assert_array_equal(
    np.sum(np.asarray(state.orders.verb)[:, 0] == constants.BUILD, axis=1), 1)
  begun = None
  for step in range(120):
    state = game.advance(state)
    kind = np.asarray(state.kind)[0, 0, 1]
    if kind == BARRACKS and begun is None:
      begun = step
      assert np.sum(np.asarray(state.orders.verb)[0, 0] == constants.CONSTRUCT) == 1
      assert np.asarray(state.unfinished)[0, 0, 1] == 347
      assert np.asarray(state.score.spent)[0, 0] == 150
    if begun is not None and not np.asarray(state.unfinished)[0, 0, 1]:
      break
  assert step - begun == 44  # 347 loops
  np.testing.assert_allclose(np.asarray(state.health)[0, 0, 1], 1000)
  assert np.sum(np.asarray(state.orders.verb)[0, 0] == constants.GATHER) == 4
  executed = host(state.executed)
  dense = RULES.types.index
  np.testing.assert_array_equal(executed.build_order[0, 0, :2], [dense[BARRACKS], 0])
  # The middle of the location's cell on the grid of 256: (-1.5 + 12) / 0.75 = 14, so 14.5 / 32.
  np.testing.assert_array_equal(executed.build_order_xy[0, 0, 0], [14.5 * 8, 6.5 * 8])
  assert np.flatnonzero(executed.units[0, 0]).tolist() == [dense[BARRACKS]]


def test_functions_are_available_exactly_if_they_have_an_effect(game):
  """Each case: a function, and a state in which it is impossible."""
  first = host(start(game))

  def edit(state, **changes):
    """The state with new values of fields, each at an index of both players' arrays."""
    for name, (index, value) in changes.items():
      values = np.array(getattr(state, name))
      values[(slice(None), slice(None), *index)] = value
      state = state._replace(**{name: values})
    return state

  side = first.side[:, :, None]
  two = (slice(1, 3),)
  everything = edit(
    first, minerals=((), 1000), kind=(two, [BARRACKS, FACTORY]), health=(two, 500.0),
    x=(two, side * [-1.5, -6.0]), y=(two, side * [-7.5, -1.0]))

  def without(gone):
    return everything._replace(kind=np.where(everything.kind == gone, 0, everything.kind))

  def poor(cost):
    return edit(everything, minerals=((), cost - 1))

  full = edit(everything, queue=((), 1))
  young = edit(everything, unfinished=((1,), 8))
  crowded = edit(everything, kind=((slice(3, S),), HALL))
  site = {"rows": range(8), "x": 1.0, "y": -3.0}
  cases = [
    ("Train_SCV_quick", poor(50)), ("Train_SCV_quick", full), ("Train_Marine_quick", poor(50)),
    ("Train_Marine_quick", young), ("Train_Marauder_quick", poor(125)),
    ("Train_Marauder_quick", without(BARRACKS)), ("Train_Hellion_quick", poor(100)),
    ("Train_Hellion_quick", without(FACTORY)), ("Build_Barracks_pt", poor(150)),
    ("Build_Barracks_pt", crowded), ("Build_Factory_pt", poor(250)),
    ("Build_Factory_pt", young), ("Build_CommandCenter_pt", poor(400)),
    ("Build_CommandCenter_pt", without(SCV)), ("Move_pt", without(SCV)),
    ("HoldPosition_quick", without(SCV))]
  assert len(cases) == GAMES

  def effect(state, chosen):
    """Whether a step differs from one without an order."""
    done = host(game.advance(game.act(state, chosen, game.due(state))))
    idle = host(game.advance(game.act(state, actions({}), game.due(state))))
    changed = np.zeros(GAMES, bool)
    for name in ("orders", "queue", "timers", "minerals", "rally"):
      for a, b in zip(jax.tree.leaves(getattr(done, name)), jax.tree.leaves(getattr(idle, name)),
                      strict=True):
        changed |= (a != b).reshape(GAMES, -1).any(axis=1)
    return changed

  chosen = actions({(g, 0): action(name, **site) for g, (name, _) in enumerate(cases)})
  can = np.asarray(game.observe(everything)[0].available_actions)[:, 0]
  index = [FUNCTION(name) for name, _ in cases]
  assert can[np.arange(GAMES), index].all()
  assert effect(everything, chosen).all()
  broken = jax.tree.map(lambda *leaves: np.stack([x[g] for g, x in enumerate(leaves)]),
                        *[state for _, state in cases])
  can = np.asarray(game.observe(broken)[0].available_actions)[:, 0]
  assert not can[np.arange(GAMES), index].any()
  assert not effect(broken, chosen).any()


def test_players_wait_for_their_own_delay(game):
  delays = [1, 7, 8, 9, 16, 17, 40, 127] * 2
  state = start(game)
  assert np.asarray(game.due(state)).all()
  chosen = actions({(g, 0): action(delay=d) for g, d in enumerate(delays)} | {
    (g, 1): action(delay=1) for g in range(GAMES)})
  state = game.act(state, chosen, game.due(state))
  waited, observed = np.zeros((2, GAMES), int)
  for step in range(1, 20):
    state = game.advance(state)
    due = np.asarray(game.due(state))
    assert due[:, 1].all()
    first = due[:, 0] & (waited == 0)
    waited[first] = 8 * step
    observed[first] = np.asarray(game.observe(state)[0].last_delay)[first, 0]
  expected = [8, 8, 8, 16, 16, 24, 40, 128] * 2
  np.testing.assert_array_equal(waited, expected)
  np.testing.assert_array_equal(observed, np.minimum(expected, 127))
