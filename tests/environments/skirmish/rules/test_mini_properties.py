"""Properties of every game of the mini tier."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.mini_games import (
  ALL_PAIRS,
  GAMES,
  LOCAL,
  RULES,
  S,
  host,
  play,
  start,
)

RANDOM = scripts.names_of("mini").index("random_player")


def invariants(state):
  """Checks what must hold in any game at any time."""
  types_, tier = RULES.types, RULES.tier
  kind = np.asarray(state.kind)
  for leaf in jax.tree.leaves(host(state)):
    if leaf.dtype == np.float32:
      assert np.isfinite(leaf).all()
  assert (state.minerals >= 0).all()
  np.testing.assert_array_equal(
    state.minerals, tier.minerals + state.score.collected - state.score.spent)
  # Only dead workers lose their cargo.
  there = np.sum(state.patches, (1, 2)) + np.sum(state.score.collected, 1) + np.sum(
    state.cargo, (1, 2))
  lost = tier.resources * tier.patch_minerals - there
  assert (0 <= lost).all() and not lost[np.sum(state.score.killed_units, 1) == 0].any()
  assert (np.asarray(state.patches) >= 0).all()
  eaten = types_.takes_food[kind].sum(-1) + types_.takes_food[np.asarray(state.queue)].sum((2, 3))
  assert (eaten <= 2 * tier.food_cap).all()  # counted in halves
  assert (types_.structure[kind[..., :S]] == (kind[..., :S] > 0)).all()
  assert not types_.structure[kind[..., S:]].any()
  health = np.asarray(state.health)
  assert (health <= types_.health[kind] + 1e-3).all() and (health[kind > 0] > 0).all()
  assert (health[kind == 0] == 0).all()
  assert np.abs(state.x).max() <= RULES.half and np.abs(state.y).max() <= RULES.half
  value = types_.value[kind] * (kind > 0)
  made = np.asarray(state.score.units) + 50 * tier.workers
  lost = np.asarray(state.score.killed_units)[:, ::-1]
  np.testing.assert_array_equal(value[..., S:].sum(-1), made - lost)
  # What was paid is on the map or in a queue, or was lost with its structure.
  accounted = np.asarray(state.score.units) + np.asarray(state.score.structures) + types_.value[
    np.asarray(state.queue)].sum((2, 3))
  lost = np.asarray(state.score.spent) - accounted
  assert (lost >= 0).all()
  assert not lost[np.asarray(state.score.killed_structures)[:, ::-1] == 0].any()


@hypothesis.settings(max_examples=3, deadline=None)
@hypothesis.given(seed=st.integers(0, 2**30))
def test_invariants_hold_in_random_games(game, seed):
  rng = np.random.default_rng(seed)
  names = np.where(rng.random((GAMES, 2)) < 0.7, RANDOM, rng.integers(0, 4, (GAMES, 2)))
  play(game, start(game, seed), names, seed, 60, invariants)


def test_invariants_hold_in_scripted_games(played):
  for state in played:
    invariants(state)
  fought = np.asarray(played[-1].score.killed_units)
  assert (fought.sum(axis=1) > 0).sum() >= 6


def test_equal_keys_give_equal_games(game):
  once = host(play(game, start(game, 5), ALL_PAIRS, 5, 80))
  again = host(play(game, start(game, 5), ALL_PAIRS, 5, 80))
  for a, b in zip(jax.tree.leaves(once), jax.tree.leaves(again), strict=True):
    np.testing.assert_array_equal(a, b)


def test_rotating_the_map_rotates_the_game(game):
  """The same players on swapped sides play the same game, bit for bit."""
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
  """Two armies facing each other, each ordered to attack through the other."""
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
      verb=jnp.asarray(np.where(have, constants.ATTACK, constants.IDLE), jnp.int32),
      x=side * 3 + zeros, y=zeros))


def test_fighters_form_a_cycle_at_equal_cost(game):
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
    left = (RULES.types.value[np.asarray(state.kind)[:, :, S:]]).sum(-1)
    for g in range(15):
      wins[g % 3] += left[g, 0] > left[g, 1]
  assert (wins >= 8).all(), wins  # of 10
