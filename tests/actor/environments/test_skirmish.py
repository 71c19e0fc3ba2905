"""Skirmish: its rules, held to numbers worked by hand and to what must hold in every game."""

from typing import NamedTuple

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor.environments import base
from starleague.actor.environments.skirmish import make_skirmish, perception, players, tables
from starleague.actor.environments.skirmish.skirmish import location_to_place, place_to_location
from starleague.agent import types, vocabulary

GAMES = 16
RULES = tables.make_rules("mini", 64, 32, 32, 8)
S, N, R = RULES.tier.structures, RULES.tier.slots, RULES.tier.resources
LOCAL = {name: i for i, name in enumerate(RULES.types.names)}
FUNCTION = vocabulary.FUNCTIONS.index
SCV, MARINE, BARRACKS, FACTORY, HALL = (
  LOCAL[name] for name in ("SCV", "Marine", "Barracks", "Factory", "CommandCenter"))


class Compiled(NamedTuple):
  """The environment over GAMES games, each function compiled once for all tests."""

  reset: object  # (keys, swap_sides) -> states
  observe: object  # states -> ([G, 2] observations, privileged)
  act: object
  advance: object
  due: object
  outcome: object
  script: object  # (names [G, 2], keys [G, 2], states) -> actions [G, 2]


@pytest.fixture(scope="module")
def game():
  environment = make_skirmish()
  statistics = jax.tree.map(
    lambda spec: jnp.zeros((2, *spec.shape), spec.dtype), types.statistics_spec())

  def reset(key, swap_sides):
    return environment.reset(key, base.MatchUp(
      jnp.array([1, 1], jnp.int32), jnp.int32(0), swap_sides, statistics))

  both = jnp.arange(2)
  return Compiled(
    reset=jax.jit(jax.vmap(reset)),
    observe=jax.jit(jax.vmap(lambda state: jax.vmap(environment.observe, (None, 0))(state, both))),
    act=jax.jit(jax.vmap(environment.act)), advance=jax.jit(jax.vmap(environment.advance)),
    due=jax.jit(jax.vmap(environment.due)), outcome=jax.jit(jax.vmap(environment.outcome)),
    script=jax.jit(jax.vmap(lambda names, keys, state: jax.vmap(
      players.scripted_action, (0, 0, None, 0))(names, keys, state, both))))


def start(game, seed=0, swap_sides=False):
  return game.reset(jax.random.split(jax.random.key(seed), GAMES),
                    jnp.broadcast_to(jnp.asarray(swap_sides), (GAMES,)))


def host(tree):
  return jax.tree.map(np.asarray, tree)


def action(name="no_op", delay=1, rows=(), target=0, x=0.0, y=0.0, queued=0, repeat=0):
  """An action of one player, in map units from the middle; vmapped by stacking."""
  units = np.full(RULES.max_selected, RULES.max_entities)
  units[:len(rows)] = rows
  location = place_to_location(RULES, jnp.float32(x), jnp.float32(y))
  return types.Action(
    function=np.int16(FUNCTION(name)), delay=np.int16(delay), queued=np.uint8(queued),
    repeat=np.uint8(repeat), units=units.astype(np.int16), target_unit=np.int16(target),
    location=np.int32(location))


def actions(by_game):
  """[G, 2] actions from {(game, player): action}; no_op for the others."""
  rows = [[by_game.get((g, p), action()) for p in range(2)] for g in range(GAMES)]
  flat = [a for row in rows for a in row]
  return jax.tree.map(lambda *values: np.stack(values).reshape(GAMES, 2, *values[0].shape), *flat)


def everyone(one):
  return actions({(g, 0): one for g in range(GAMES)})


def play(game, state, names, seed, steps, visit=lambda state: None):
  """Scripted games; every step's state goes to `visit`."""
  names = jnp.asarray(names, jnp.int32)
  for step in range(steps):
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), step), (GAMES, 2))
    state = game.advance(game.act(state, game.script(names, keys, state), game.due(state)))
    visit(state)
  return state


ALL_PAIRS = np.array([(i, j) for i in range(4) for j in range(4)])


@pytest.fixture(scope="module")
def played(game):
  """States of games of every pair of scripted players, every 40 steps."""
  states, state = [], start(game, 3)
  for part in range(8):
    state = play(game, state, ALL_PAIRS, part, 40)
    states.append(host(state))
  return states


def invariants(state):
  """What must hold in any game at any time."""
  types_, tier = RULES.types, RULES.tier
  kind = np.asarray(state.kind)
  for leaf in jax.tree.leaves(host(state)):
    if leaf.dtype == np.float32:
      assert np.isfinite(leaf).all()
  assert (state.minerals >= 0).all()
  np.testing.assert_array_equal(
    state.minerals, tier.minerals + state.score.collected - state.score.spent)
  np.testing.assert_array_equal(
    np.sum(state.patches, (1, 2)) + np.sum(state.score.collected, 1),
    tier.resources * tier.patch_minerals)
  assert (np.asarray(state.patches) >= 0).all()
  eaten = types_.takes_food[kind].sum(-1) + types_.takes_food[np.asarray(state.queue)].sum((2, 3))
  assert (eaten <= tier.units).all()
  assert (types_.structure[kind[..., :S]] == (kind[..., :S] > 0)).all()
  assert not types_.structure[kind[..., S:]].any()
  health = np.asarray(state.health)
  assert (health <= types_.health[kind] + 1e-3).all() and (health[kind > 0] > 0).all()
  assert (health[kind == 0] == 0).all()
  assert np.abs(state.x).max() <= RULES.half and np.abs(state.y).max() <= RULES.half
  value = types_.cost[kind] * (kind > 0)
  made = np.asarray(state.score.units) + 50 * tier.workers
  lost = np.asarray(state.score.killed_units)[:, ::-1]
  np.testing.assert_array_equal(value[..., S:].sum(-1), made - lost)
  # What was paid has appeared or is in training, but for what burnt with its building.
  accounted = np.asarray(state.score.units) + np.asarray(state.score.structures) + types_.cost[
    np.asarray(state.queue)].sum((2, 3))
  burnt = np.asarray(state.score.spent) - accounted
  assert (burnt >= 0).all()
  assert not burnt[np.asarray(state.score.killed_structures)[:, ::-1] == 0].any()


def test_the_tables_hold_the_games_numbers():
  types_ = RULES.types
  assert (types_.health[MARINE], types_.health[HALL]) == (45, 1500)
  # 6 damage, 5 against a point of armour; 10 and 10 more against armoured; 8 and 6 against light.
  marauder, hellion = LOCAL["Marauder"], LOCAL["Hellion"]
  assert types_.damage[MARINE, MARINE] == 6 and types_.damage[MARINE, marauder] == 5
  assert types_.damage[marauder, marauder] == 19 and types_.damage[marauder, hellion] == 10
  assert types_.damage[hellion, MARINE] == 14 and types_.damage[hellion, BARRACKS] == 7
  assert types_.loops[MARINE] == 134  # 400 loops, three times as fast
  assert types_.speed[MARINE] * 4 == 2.25  # four ticks are a second
  np.testing.assert_array_equal(np.flatnonzero(types_.fighter), [MARINE, marauder, hellion])


def test_what_the_tables_allow_the_game_allows():
  functions, types_ = RULES.functions, RULES.types
  allowed = vocabulary.CAPABLE[functions.index][:, types_.index]
  assert not (functions.capable & ~allowed)[1:].any()
  assert functions.capable[1:].any(axis=1).all()


def test_shapes_and_dtypes_are_those_of_the_contract(game):
  state = start(game)
  observation, privileged = game.observe(state)
  for found, spec in zip(
      jax.tree.leaves((observation, privileged)),
      jax.tree.leaves((types.observation_spec(64, 32), types.privileged_spec())), strict=True):
    assert (found.shape, found.dtype) == ((GAMES, 2, *spec.shape), spec.dtype)
  later = game.advance(game.act(state, actions({}), game.due(state)))
  assert jax.tree.map(jnp.shape, later) == jax.tree.map(jnp.shape, state)
  assert [x.dtype for x in jax.tree.leaves(later)] == [x.dtype for x in jax.tree.leaves(state)]


def test_sizes_that_do_not_fit_are_refused():
  with pytest.raises(ValueError, match="max_entities is 32, but a player may see 60"):
    make_skirmish(max_entities=32)
  with pytest.raises(ValueError, match="unknown tier 'huge'"):
    make_skirmish("huge")
  with pytest.raises(ValueError, match="multiple of 32"):
    make_skirmish(map_size=40)


def test_the_first_observation(game):
  observation, privileged = host(game.observe(start(game)))
  column = types.COLUMN
  # A town hall, four workers; none of the enemy; all twelve patches, as a map shows them.
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
  assert (observation.away_race == 0).all() and (observation.home_race == 1).all()
  can = {vocabulary.FUNCTIONS.names[i]
         for i in np.flatnonzero(observation.available_actions[0, 0])}
  assert can == {"no_op", "Smart_pt", "Smart_unit", "Attack_pt", "Move_pt", "Move_unit",
                 "Stop_quick", "HoldPosition_quick", "Harvest_Gather_unit", "Train_SCV_quick"}
  visibility = observation.minimap[0, :, 1]
  assert visibility[0, 7, 7] == 2 and visibility[0, 24, 24] == 0 and visibility[1, 24, 24] == 2
  assert not privileged.cumulative_score[0, 0, types.SCORE_COLUMNS.index("spent_minerals")]


def test_workers_bring_five_minerals_every_forty_loops(game):
  state = start(game)
  for _ in range(20):
    state = game.advance(state)
  before = np.asarray(state.minerals)
  for _ in range(50):
    state = game.advance(state)
  np.testing.assert_array_equal(np.asarray(state.minerals) - before, 4 * 10 * 5)


def test_training_costs_takes_its_time_and_sends_to_mine(game):
  state = start(game)
  train = everyone(action("Train_SCV_quick", rows=[0], repeat=2))
  state = game.advance(game.act(state, train, game.due(state)))
  # 50 minerals pay one of the three.
  np.testing.assert_array_equal(np.asarray(state.queue)[:, 0, 0], [[SCV, 0, 0, 0, 0]] * GAMES)
  np.testing.assert_array_equal(np.asarray(state.minerals)[:, 0], 0)
  # The step of the order counts: 272 loops at tempo 3 are 91, 12 steps.
  for _ in range(10):
    state = game.advance(state)
  assert (np.sum(np.asarray(state.kind) == SCV, axis=2) == 4).all()
  state = game.advance(state)
  np.testing.assert_array_equal(np.sum(np.asarray(state.kind) == SCV, axis=2)[:, 0], 5)
  np.testing.assert_array_equal(np.asarray(state.orders.verb)[:, 0, 4], tables.GATHER)


def test_building_costs_takes_a_worker_and_its_time(game):
  state = start(game)
  state = state._replace(minerals=state.minerals + 250)
  site = (-1.5, -7.5)
  build = everyone(action("Build_Barracks_pt", rows=[1, 2], x=site[0], y=site[1]))
  state = game.advance(game.act(state, build, game.due(state)))
  np.testing.assert_array_equal(
    np.sum(np.asarray(state.orders.verb)[:, 0] == tables.BUILD, axis=1), 1)
  begun = None
  for step in range(120):
    state = game.advance(state)
    kind = np.asarray(state.kind)[0, 0, 1]
    if kind == BARRACKS and begun is None:
      begun = step
      assert np.sum(np.asarray(state.orders.verb)[0, 0] == tables.CONSTRUCT) == 1
      assert np.asarray(state.unfinished)[0, 0, 1] == 347
      assert np.asarray(state.score.spent)[0, 0] == 150
    if begun is not None and not np.asarray(state.unfinished)[0, 0, 1]:
      break
  assert step - begun == 44  # 347 loops
  np.testing.assert_allclose(np.asarray(state.health)[0, 0, 1], 1000)
  assert np.sum(np.asarray(state.orders.verb)[0, 0] == tables.GATHER) == 4
  executed = host(state.executed)
  dense = RULES.types.index
  np.testing.assert_array_equal(executed.build_order[0, 0, :2], [dense[BARRACKS], 0])
  # The middle of the location's cell, on the 256 grid: (-1.5 + 12) / .75 = 14, its middle 14.5 / 32.
  np.testing.assert_array_equal(executed.build_order_xy[0, 0, 0], [14.5 * 8, 6.5 * 8])
  assert np.flatnonzero(executed.units[0, 0]).tolist() == [dense[BARRACKS]]


def test_what_is_available_is_exactly_what_can_be_done(game):
  """Each row: a function, how it is made possible, and how it is then made impossible."""
  first = host(start(game))

  def edit(state, **changes):
    """The state with changes: a field's new values at an index of its arrays, both players'."""
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
    """Whether anything but what was last done differs from a step without an order."""
    done = host(game.advance(game.act(state, chosen, game.due(state))))
    idle = host(game.advance(game.act(state, actions({}), game.due(state))))
    changed = np.zeros(GAMES, bool)
    for name in ("orders", "queue", "training", "minerals", "rally"):
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


def test_a_player_waits_for_its_own_delay(game):
  delays = [1, 7, 8, 9, 16, 17, 40, 127] * 2
  state = start(game)
  assert np.asarray(game.due(state)).all()
  chosen = actions({(g, 0): action(delay=d) for g, d in enumerate(delays)} | {
    (g, 1): action(delay=1) for g in range(GAMES)})
  state = game.act(state, chosen, game.due(state))
  waited = np.zeros(GAMES, int)
  observed = np.zeros(GAMES, int)
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


def test_acting_shows_nothing_to_the_other_player(game, played):
  state = played[3]
  chosen = everyone(action("Attack_pt", rows=range(8), x=3.0, y=3.0))
  acted = game.act(state, chosen, np.tile([True, False], (GAMES, 1)))
  before, after = host(game.observe(state)), host(game.observe(acted))
  for a, b in zip(jax.tree.leaves(before[0]), jax.tree.leaves(after[0]), strict=True):
    np.testing.assert_array_equal(a[:, 1], b[:, 1])
  assert (after[0].last_function[:, 0] == FUNCTION("Attack_pt")).all()


def test_what_was_last_done_is_observed(game):
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


def test_discs_are_the_cells_whose_middles_they_hold():
  rng = np.random.default_rng(0)
  x, y = rng.uniform(-12, 12, (2, 3, 5)).astype(np.float32)
  radius = rng.uniform(-1, 9, (3, 5)).astype(np.float32)
  found = np.asarray(perception.cells(RULES, perception.discs(RULES, x, y, radius)))
  middles = (np.arange(32) - 15.5) * 0.75
  square = ((middles[None, :, None] - x[:, None, None]) ** 2
            + (middles[:, None, None] - y[:, None, None]) ** 2)
  inside = (square <= radius[:, None, None] ** 2) & (radius > 0)[:, None, None]
  np.testing.assert_array_equal(found, inside.any(axis=-1))


def test_locations_and_places_agree():
  locations = jnp.arange(32 * 32)
  x, y = location_to_place(RULES, locations)
  np.testing.assert_array_equal(place_to_location(RULES, x, y), locations)
  assert (float(x[0]), float(y[0])) == (-11.625, -11.625)


@hypothesis.settings(max_examples=3, deadline=None)
@hypothesis.given(seed=st.integers(0, 2**30))
def test_nothing_is_lost_in_games_at_random(game, seed):
  rng = np.random.default_rng(seed)
  names = np.where(rng.random((GAMES, 2)) < 0.7, players.RANDOM, rng.integers(0, 4, (GAMES, 2)))
  play(game, start(game, seed), names, seed, 60, invariants)


def test_nothing_is_lost_in_games_of_scripts(played):
  for state in played:
    invariants(state)
  fought = np.asarray(played[-1].score.killed_units)
  assert (fought.sum(axis=1) > 0).sum() >= 6


def test_nobody_sees_what_is_hidden(game, played):
  """Whatever the enemy does out of sight, the observation is the same, and so is the script."""
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
      training=renew(state.training), cooldown=renew(state.cooldown),
      orders=jax.tree.map(renew, state.orders), trip=renew(state.trip),
      score=state.score._replace(collected=renew(state.score.collected)))
    for a, b in zip(jax.tree.leaves(host(game.observe(state)[0])),
                    jax.tree.leaves(host(game.observe(other)[0])), strict=True):
      np.testing.assert_array_equal(a[:, 0], b[:, 0])
    for a, b in zip(game.script(names, keys, state), game.script(names, keys, other), strict=True):
      np.testing.assert_array_equal(a[:, 0], b[:, 0])


def test_enemies_are_shown_where_they_are_in_sight(game, played):
  column, types_ = types.COLUMN, RULES.types
  for state in played[1::2]:
    observation = host(game.observe(state)[0])
    for g in range(GAMES):
      own, enemy = state.kind[g, 0], state.kind[g, 1]
      distance = np.hypot(state.x[g, 0][:, None] - state.x[g, 1],
                          state.y[g, 0][:, None] - state.y[g, 1])
      reach = types_.sight[own][:, None] + types_.radius[enemy]
      clear = np.abs(distance - reach).min() > 1e-3
      expected = ((distance <= reach) & (own > 0)[:, None] & (enemy > 0)).any(axis=0)
      if clear:
        rows = observation.entities[g, 0, :observation.entity_count[g, 0]]
        shown = (rows[:, column["alliance"]] == 4) & (rows[:, column["display_type"]] == 1)
        np.testing.assert_array_equal(
          rows[shown, column["unit_type"]], types_.index[enemy[expected]])


def test_a_game_ends_with_the_last_structure(game):
  state = start(game)
  kind, health = np.array(state.kind), np.array(state.health)
  kind[0, 1, :S] = 0  # player 1 has lost
  kind[1, 0, :S] = 0
  kind[2, :, :S] = 0  # both have
  loop = np.array(state.loop)
  loop[3:5] = RULES.tier.loop_limit - 8  # the last step
  loop[5] = RULES.tier.loop_limit - 16
  state = state._replace(
    kind=jnp.asarray(kind), health=jnp.where(kind > 0, health, 0.0), loop=jnp.asarray(loop))
  later = game.advance(state)
  outcome = host(game.outcome(later))
  np.testing.assert_array_equal(outcome.over[:7], [True] * 5 + [False] * 2)
  np.testing.assert_array_equal(
    outcome.reward[:6], [[1, -1], [-1, 1], [0, 0], [0, 0], [0, 0], [0, 0]])
  assert not np.asarray(game.due(later))[:5].any()
  last = game.advance(later)
  for a, b in zip(jax.tree.leaves(host(later)), jax.tree.leaves(host(last)), strict=True):
    np.testing.assert_array_equal(a[:5], b[:5])
  assert (np.asarray(last.loop)[5:] == np.asarray(later.loop)[5:] + 8).all()


def test_the_same_keys_play_the_same_game(game):
  once = host(play(game, start(game, 5), ALL_PAIRS, 5, 80))
  again = host(play(game, start(game, 5), ALL_PAIRS, 5, 80))
  for a, b in zip(jax.tree.leaves(once), jax.tree.leaves(again), strict=True):
    np.testing.assert_array_equal(a, b)


def test_turning_the_map_turns_the_game(game):
  """The same players from the other places play the same game, to the last bit."""
  half = GAMES // 2
  names = np.concatenate([ALL_PAIRS[5:5 + half]] * 2)
  keys = jnp.concatenate([jax.random.split(jax.random.key(1), half)] * 2)
  state = game.reset(keys, jnp.arange(GAMES) >= half)
  for step in range(260):
    keys = jax.random.split(jax.random.fold_in(jax.random.key(2), step), (half, 2))
    keys = jnp.concatenate([keys, keys])
    chosen = game.script(jnp.asarray(names), keys, state)
    state = game.advance(game.act(state, chosen, game.due(state)))
  state = host(state)
  assert state.score.killed_units.sum() > 0
  for name in ("kind", "health", "minerals", "patches", "queue", "unfinished", "winner"):
    value = getattr(state, name)
    np.testing.assert_array_equal(value[:half], value[half:], err_msg=name)
  for name in ("x", "y"):
    value = getattr(state, name)
    np.testing.assert_array_equal(value[:half], -value[half:], err_msg=name)


def test_swapping_the_players_swaps_the_game(game):
  half = GAMES // 2
  pairs = ALL_PAIRS[5:5 + half]
  names = np.concatenate([pairs, pairs[:, ::-1]])
  keys = jnp.concatenate([jax.random.split(jax.random.key(1), half)] * 2)
  state = game.reset(keys, jnp.arange(GAMES) >= half)
  for step in range(200):
    keys = jax.random.split(jax.random.fold_in(jax.random.key(2), step), (half, 2))
    keys = jnp.concatenate([keys, keys[:, ::-1]])
    chosen = game.script(jnp.asarray(names), keys, state)
    state = game.advance(game.act(state, chosen, game.due(state)))
  state = host(state)
  for name in ("kind", "x", "y", "health", "minerals", "patches", "queue"):
    value = getattr(state, name)
    np.testing.assert_array_equal(value[:half], value[half:, ::-1], err_msg=name)


def army(state, kinds, numbers, seed):
  """Two armies that face one another, each ordered to attack through the other."""
  rng = np.random.default_rng(seed)
  side = np.asarray(state.side)[:, :, None]
  have = np.arange(RULES.tier.units) < np.asarray(numbers)[:, :, None]
  kind = np.where(have, np.asarray(kinds)[:, :, None], 0)
  x = side * rng.uniform(-4.5, -1.5, kind.shape) * have
  y = rng.uniform(-2, 2, kind.shape) * have
  zeros = jnp.zeros(kind.shape, jnp.float32)

  def units(values, new):
    return jnp.asarray(values).at[:, :, S:].set(jnp.asarray(new, values.dtype))

  return state._replace(
    kind=units(state.kind, kind), x=units(state.x, x), y=units(state.y, y),
    health=units(state.health, RULES.types.health[kind]),
    orders=state.orders._replace(
      verb=jnp.asarray(np.where(have, tables.ATTACK, tables.IDLE), jnp.int32),
      x=side * 3 + zeros, y=zeros))


def test_each_fighter_beats_one_and_loses_to_another_at_equal_cost(game):
  """500 minerals a side: marines beat marauders, marauders hellions, hellions marines."""
  bought = {"Marine": 10, "Marauder": 4, "Hellion": 5}
  pairs = [("Marine", "Marauder"), ("Marauder", "Hellion"), ("Hellion", "Marine")]
  wins = np.zeros(3)
  for seed in range(2):
    chosen = [pairs[g % 3] for g in range(GAMES)]
    kinds = [[LOCAL[a], LOCAL[b]] for a, b in chosen]
    state = army(start(game), kinds, [[bought[a], bought[b]] for a, b in chosen], seed)
    for _ in range(100):
      state = game.advance(state)
    left = (RULES.types.cost[np.asarray(state.kind)[:, :, S:]]).sum(-1)
    for g in range(15):
      wins[g % 3] += left[g, 0] > left[g, 1]
  assert (wins >= 8).all(), wins  # of 10


@pytest.mark.slow
def test_scripts_beat_whom_they_should(game):
  names = np.array([(1, 0), (2, 0), (1, 3), (2, 3)] * 4)
  state = play(game, start(game, 9, np.arange(GAMES) % 8 < 4), names, 9, 560)
  winner = np.asarray(state.winner).reshape(4, 4)
  assert (winner[:, [0, 2, 3]] == 0).mean() > 0.9
  assert (winner[:, 1] == 0).mean() >= 0.75
