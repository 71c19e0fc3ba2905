"""Properties of every game of the default tier."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types
from starleague.environments.skirmish.bots import plans, scripts
from starleague.environments.skirmish.games import replays
from starleague.environments.skirmish.rules.interface.commands import give_orders
from starleague.environments.skirmish.rules.tables import constants
from starleague.environments.skirmish.rules.tables.tables import GameConfig
from tests.environments.skirmish.default_games import (
  GAMES,
  LOCAL,
  MATCH_UPS,
  NAMES,
  RULES,
  SIZES,
  TIER,
  TYPES,
  N,
  R,
  S,
  choose,
  host,
  mixed_names,
  start,
)

PRODUCTS, GEYSERS = RULES.products, np.array(TIER.geysers)


def invariants(state):
  """Checks what must hold in any game at any time; a state [G, ...] of numpy arrays."""
  for leaf in jax.tree.leaves(state):
    if leaf.dtype == np.float32:
      assert np.isfinite(leaf).all()
  kind, queue, score = state.kind, state.queue, state.score
  # Money: income was spent or is still there; resources lost what was collected, what workers
  # carry, and what they carried when they died.
  assert (state.minerals >= 0).all() and (state.vespene >= 0).all()
  np.testing.assert_array_equal(state.minerals, TIER.minerals + score.collected - score.spent)
  np.testing.assert_array_equal(state.vespene, score.collected_vespene - score.spent_vespene)
  assert (state.patches >= 0).all() and (state.match_up.income == 100).all()
  for gas, brought, full in ((False, score.collected, TIER.patch_minerals),
                             (True, score.collected_vespene, TIER.geyser_vespene)):
    left = state.patches[:, :, gas == GEYSERS]
    assert (left.sum((1, 2)) + brought.sum(1) + carried(state, gas) <= full * left[0].size).all()
  assert (0 <= state.cargo).all() and (state.cargo <= constants.LOAD_MINERALS).all()
  assert not state.cargo[~TYPES.worker[kind[..., S:]]].any()
  # Food and slots: units and products in queues never exceed the limits.
  food = TYPES.takes_food[kind].sum(-1) + PRODUCTS.takes_food[queue].sum((2, 3))
  assert (food <= 2 * TIER.food_cap).all()
  taken = (kind[..., S:] > 0).sum(-1) + PRODUCTS.brood[queue].sum((2, 3))
  assert (taken <= TIER.units).all()
  # Slots: structures first, those that shoot last among them, then units.
  assert (TYPES.structure[kind[..., :S]] == (kind[..., :S] > 0)).all()
  assert not TYPES.fighter[kind[..., :TIER.unarmed]].any()
  shooters = kind[..., TIER.unarmed:S]
  assert (TYPES.fighter[shooters] == (shooters > 0)).all()
  assert not TYPES.structure[kind[..., S:]].any()
  assert (TYPES.race[kind] == state.race[..., None])[kind > 0].all()
  # Queues have no gaps, and are empty for absent and unfinished structures.
  assert ((queue[..., 1:] == 0) | (queue[..., :-1] > 0)).all()
  idle = (kind[..., :S] == 0) | (state.unfinished > 0)
  assert not queue[idle].any() and not state.unfinished[kind[..., :S] == 0].any()
  assert not state.timers[queue == 0].any()
  loops = PRODUCTS.loops[queue]
  assert (state.timers <= loops).all()
  # Hit points, shields, energy.
  effects = RULES.upgrades.effects[:, constants.EFFECTS.index("health")]
  more = state.upgrades.astype(np.float32) @ effects  # [G, 2, Y]
  most = TYPES.health[kind] + np.take_along_axis(more, kind, axis=-1)
  there = kind > 0
  assert (state.health[there] > 0).all() and (state.health <= most + 1e-3).all()
  assert (state.health[~there] == 0).all() and (state.shield[~there] == 0).all()
  assert (state.shield >= 0).all() and (state.shield <= TYPES.shield[kind] + 1e-3).all()
  assert (state.energy >= 0).all() and (state.energy <= TYPES.energy[kind] + 1e-3).all()
  assert (state.larvae >= 0).all() and not state.larvae[~TYPES.larvae[kind[..., :S]]].any()
  assert (state.stimmed >= 0).all() and (state.scan_loops >= 0).all()
  assert ((0 <= state.repair_debt) & (state.repair_debt <= 1.001 + 40)).all()
  edge = np.where(np.arange(N) < S, RULES.half, RULES.half - 0.5)
  assert (np.abs(state.x) <= edge).all() and (np.abs(state.y) <= edge).all()
  assert not state.was_selected[~there].any()
  assert not (state.memory.seen & ~there[:, ::-1]).any()
  # Levels of upgrades are researched in order and once.
  for u, name in enumerate(RULES.upgrades.names):
    if name.endswith(("Level2", "Level3")):
      assert (state.upgrades[..., u - 1] | ~state.upgrades[..., u]).all()
  product = len(TYPES.names) + np.arange(len(RULES.upgrades.names))
  working = (queue.reshape(GAMES, 2, -1, 1) == product).sum(2)
  assert (working <= ~state.upgrades).all()


def carried(state, gas):
  """The minerals or vespene that workers carry: [G]."""
  return np.where(state.cargo_gas == gas, state.cargo, 0).sum((1, 2))


def on_the_map(state, gas):
  """All minerals or vespene: in resources, carried and collected: [G]."""
  brought = state.score.collected_vespene if gas else state.score.collected
  return state.patches[:, :, gas == GEYSERS].sum((1, 2)) + carried(state, gas) + brought.sum(1)


def check_cargo_is_conserved(before, after):
  """Checks that between two steps only removed workers lose their cargo."""
  worker = TYPES.worker[before.kind[..., S:]]
  gone = worker & ~TYPES.worker[after.kind[..., S:]]
  for gas, load in ((False, constants.LOAD_MINERALS), (True, constants.LOAD_VESPENE)):
    lost = on_the_map(before, gas) - on_the_map(after, gas)
    assert (0 <= lost).all() and (lost <= load * gone.sum((1, 2))).all()


def play(game, state, names, seed, steps, visit=lambda state: None):
  for step in range(steps):
    actions = choose(game, state, names, seed, step)
    state = game.advance(game.act(state, actions, game.due(state)))
    visit(host(state))
  return state


@pytest.mark.slow
def test_invariants_hold_in_rich_games(default_record):
  for state in default_record.states:
    invariants(state)
  assert (default_record.states[-1].score.killed_structures > 0).sum() > 10


@pytest.mark.slow
@hypothesis.settings(max_examples=2)
@hypothesis.given(seed=st.integers(0, 2**30))
def test_invariants_hold_in_random_games(default_game, seed):
  rng = np.random.default_rng(seed)
  names = np.where(rng.random((GAMES, 2)) < 0.5, NAMES.index("L0"),
                   rng.integers(0, len(NAMES), (GAMES, 2)))
  states = [start(default_game, seed, swap_sides=rng.random(GAMES) < 0.5)]
  play(default_game, states[0], names, seed, 50, states.append)
  for state in states[1:]:
    invariants(state)
  for before, after in zip(states[1:], states[2:], strict=False):
    check_cargo_is_conserved(before, after)


# Rotating the map and swapping the players.

_PLACES = {"x", "y", "rally_x", "rally_y", "scan_x", "scan_y", "side"}


def transformed(state, swaps, turns):
  """The games with players swapped [G] bool and maps rotated [G] bool."""
  def leaf(path, values):
    names = [part.name for part in path]
    values = np.array(values)
    shape = (-1, *[1] * (values.ndim - 1))
    if names[-1] in _PLACES:
      values = np.where(turns.reshape(shape), -values, values)
    if names[-1] in ("visible", "explored"):
      bits = np.unpackbits(values.view(np.uint8), axis=-1, bitorder="little")
      bits = np.packbits(bits[..., ::-1, ::-1], axis=-1, bitorder="little").view(np.uint32)
      values = np.where(turns.reshape(shape), bits, values)
    if names[-1] == "swap_sides":
      return values ^ turns ^ swaps
    if names[-1] == "winner":
      return np.where(swaps & (values >= 0) & (values < 2), 1 - values, values)
    if values.ndim > 1 and values.shape[1] == 2:
      values = np.where(swaps.reshape(shape), values[:, ::-1], values)
    return values

  return jax.tree_util.tree_map_with_path(leaf, state)


def unequal(one, other):
  """Names of arrays that differ; places in the build order round in one direction, so they may."""
  pairs = zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True)
  return [jax.tree_util.keystr(path) for (path, a), b in pairs
          if "build_order_xy" not in jax.tree_util.keystr(path) and not np.array_equal(a, b)]


@pytest.mark.slow
def test_swapped_and_rotated_games_are_equivalent(default_game):
  """Bit for bit, on every map, over 200 consecutive steps."""
  g = np.arange(GAMES)
  swaps, turns = (g // 3) % 3 != 1, (g // 3) % 3 != 0  # swapped, rotated, or both
  rng, state = np.random.default_rng(2), start(default_game, 4)
  state = play(default_game, state, mixed_names(0, rng), 9, 60)
  other = transformed(host(state), swaps, turns)
  for step in range(200):
    actions = choose(default_game, state, mixed_names(step, rng), 8, step)
    acted = default_game.act(state, actions, default_game.due(state))
    noted = transformed(host(acted), swaps, turns)
    state = default_game.advance(acted)
    # The other game continues from its own state; only the actions are copied.
    other = default_game.advance(other._replace(**{name: getattr(noted, name) for name in (
      "commands", "next_loop", "last_loop", "last_function", "last_queued", "last_repeat",
      "refused", "was_selected", "was_targeted")}))
    other = host(other)
    assert not unequal(other, transformed(host(state), swaps, turns)), step
  assert (np.asarray(state.score.killed_units).sum(axis=1) > 0).sum() > 10


# Fog of war.

def hide(state, rng, player=1):
  """A game that looks the same to the other player: everything hidden from it is random.

  Without hatcheries, whose creep is visible.
  """
  hidden = ~state.memory.seen[:, 1 - player]  # of the player's slots
  plain = [LOCAL[name] for name in ("Barracks", "Gateway", "SpawningPool", "Nexus", "Starport")]
  armed = [LOCAL[name] for name in ("Bunker", "PhotonCannon", "SpineCrawler")]
  units = [LOCAL[name] for name in ("SCV", "Marine", "Zergling", "VoidRay", "Medivac", "Queen")]
  slots = np.arange(N)
  kinds = np.where(slots < TIER.unarmed, rng.choice(plain, (GAMES, N)), np.where(
    slots < S, rng.choice(armed, (GAMES, N)), rng.choice(units, (GAMES, N))))
  kinds *= rng.random((GAMES, N)) < 0.7

  def put(values, new):
    values = np.array(values)
    values[:, player] = np.where(hidden, new, values[:, player])
    return values

  def randomise(values, most=4):
    values = np.array(values)
    values[:, player] = rng.integers(0, most, values[:, player].shape)
    return values

  # Upgrades are visible on units in sight.
  unseen = ~state.memory.seen[:, 1 - player].any(axis=1)
  upgrades = np.array(state.upgrades)
  upgrades[unseen, player] = rng.random(upgrades[unseen, player].shape) < 0.5
  return state._replace(
    kind=put(state.kind, kinds), x=put(state.x, rng.uniform(-20, 20, (GAMES, N))),
    y=put(state.y, rng.uniform(-20, 20, (GAMES, N))),
    health=put(state.health, rng.uniform(1, 30, (GAMES, N))),
    shield=put(state.shield, rng.uniform(0, 30, (GAMES, N))),
    energy=randomise(state.energy, 200),
    hurt=put(state.hurt, rng.random((GAMES, N)) < 0.5), calm=randomise(state.calm),
    minerals=randomise(state.minerals, 500), vespene=randomise(state.vespene, 500),
    queue=randomise(state.queue, len(PRODUCTS.minerals)), timers=randomise(state.timers, 100),
    rally=randomise(state.rally, 2), larvae=randomise(state.larvae),
    injected=randomise(state.injected),
    boosted=randomise(state.boosted), orders=jax.tree.map(randomise, state.orders),
    next_orders=jax.tree.map(randomise, state.next_orders), cooldown=randomise(state.cooldown),
    trip=randomise(state.trip), cargo=randomise(state.cargo),
    cargo_gas=randomise(state.cargo_gas, 2),
    stimmed=randomise(state.stimmed), upgrades=upgrades, refused=randomise(state.refused, 200),
    scan_x=randomise(state.scan_x), scan_loops=randomise(state.scan_loops, 100),
    patches=randomise(state.patches, 900), repair_debt=randomise(state.repair_debt),
    match_up=state.match_up._replace(income=randomise(state.match_up.income, 200)),
    next_loop=randomise(state.next_loop),
    last_function=randomise(state.last_function), commands=jax.tree.map(randomise, state.commands),
    score=jax.tree.map(randomise, state.score), executed=jax.tree.map(randomise, state.executed),
    memory=jax.tree.map(randomise, state.memory)._replace(
      visible=state.memory.visible, explored=state.memory.explored))


@pytest.mark.slow
def test_hidden_state_changes_no_observation(default_game, default_record):
  """Nor any scripted action, except of the cheating player with full vision."""
  rng = np.random.default_rng(1)
  cheats = np.array([script.skill.vision for script in scripts.scripts_of("default")])
  honest = np.flatnonzero(~cheats)
  keys = jax.random.split(jax.random.key(0), (GAMES, 2))
  changed = 0
  for i, state in enumerate(default_record.states[::3]):
    one, other = hide(state, rng), hide(state, rng)
    for a, b in zip(jax.tree.leaves(host(default_game.observe(one)[0])),
                    jax.tree.leaves(host(default_game.observe(other)[0])), strict=True):
      np.testing.assert_array_equal(a[:, 0], b[:, 0])
    for turn in range(3):
      names = np.full((GAMES, 2), honest[(np.arange(GAMES) + 7 * turn + i) % len(honest)][:, None])
      for a, b in zip(default_game.script(names, keys, one),
                      default_game.script(names, keys, other), strict=True):
        np.testing.assert_array_equal(a[:, 0], b[:, 0])
    names = np.full((GAMES, 2), np.flatnonzero(cheats)[0])
    for a, b in zip(default_game.script(names, keys, one), default_game.script(names, keys, other),
                    strict=True):
      changed += int((np.asarray(a)[:, 0] != np.asarray(b)[:, 0]).sum())
  assert changed > 0


@pytest.mark.slow
def test_hidden_state_changes_no_order(default_record):
  """Orders depend only on what is known, even where a site is rejected."""
  order = jax.jit(jax.vmap(lambda state: give_orders(
    RULES, state, jnp.ones((2, len(RULES.functions.names)), bool))[0].orders))
  builds = np.flatnonzero(RULES.functions.kind == constants.BUILDING)
  rng, accepted, refused = np.random.default_rng(1), 0, 0
  for state in default_record.states[::4]:
    one, other = hide(state, rng), hide(state, rng)
    # At or beside a slot that is hidden in one of the two games.
    slot, g = rng.integers(0, S, GAMES), np.arange(GAMES)
    function = np.array([rng.choice([c for c in builds if RULES.functions.capable[c][
      state.kind[i, 0, S:]].any()] or builds) for i in g])
    commands = jax.tree.map(np.array, state.commands)
    for values, new in ((commands.function, function), (commands.selected, True),
                        (commands.x, one.x[g, 1, slot] + rng.uniform(-3, 3, GAMES)),
                        (commands.y, one.y[g, 1, slot] + rng.uniform(-3, 3, GAMES)),
                        (commands.target_kind, constants.NO_TARGET), (commands.queued, False)):
      values[:, 0] = np.reshape(new, (-1, *[1] * (values.ndim - 2)))
    found = [host(order(game._replace(commands=commands))) for game in (one, other)]
    for a, b in zip(*found, strict=True):
      np.testing.assert_array_equal(a[:, 0], b[:, 0])
    sets_out = (found[0].verb[:, 0] == constants.BUILD) & (
      state.orders.verb[:, 0] != constants.BUILD)
    accepted += int(sets_out.any(axis=1).sum())
    refused += int((~sets_out.any(axis=1)).sum())
  assert accepted > 10 and refused > 10


@pytest.mark.slow
def test_replays_of_all_match_ups_resimulate_to_equal_hashes(tmp_path):
  sizes = GameConfig("default", **SIZES)
  names = [name for name in NAMES if name in plans.STRATEGIES]
  for i, (one, other, ground) in enumerate(MATCH_UPS[j] for j in (0, 4, 8, 9, 13, 17, 18, 22, 26)):
    pair = (replays.scripted_player(names[i % 6], sizes),
            replays.scripted_player("L0" if i % 2 else names[(i + 3) % 6], sizes))
    replay = replays.record(
      pair, i, game=sizes, max_steps=60,
      match_up=replays.make_match_up((one, other), ground, swap_sides=bool(i % 2)))
    loaded = replays.load(replays.save(tmp_path / f"{i}.npz", replay))
    states = replays.resimulate(loaded)  # raises if a hash differs
    assert states.loop[-1] == 60 * constants.LOOPS_PER_STEP
    assert replays.state_hash(jax.tree.map(lambda x: x[-1], states)) == replay.hashes[-1]
    assert len(replay.step) > 4


@pytest.mark.slow
def test_observations_have_their_specified_shapes(default_game):
  state = start(default_game)
  observation, _ = default_game.observe(state)
  spec = types.observation_spec(SIZES["max_entities"], SIZES["map_size"])
  for found, expected in zip(jax.tree.leaves(observation), jax.tree.leaves(spec), strict=True):
    assert (found.shape, found.dtype) == ((GAMES, 2, *expected.shape), expected.dtype)
  assert R == 40 and jnp.asarray(observation.entity_count).min() == 1 + TIER.workers + R
