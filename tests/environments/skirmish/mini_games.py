"""Batches of mini games for tests, through functions compiled once."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments import base
from starleague.environments.skirmish import make_skirmish
from starleague.environments.skirmish.bots import players
from starleague.environments.skirmish.rules.interface.acting import place_to_location
from starleague.environments.skirmish.rules.tables import tables

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


def compile_game() -> Compiled:
  environment = make_skirmish()
  def reset(key, swap_sides):
    return environment.reset(key, base.make_match_up(swap_sides=swap_sides))

  both = jnp.arange(2)
  return Compiled(
    reset=jax.jit(jax.vmap(reset)),
    observe=jax.jit(jax.vmap(lambda state: jax.vmap(environment.observe, (None, 0))(state, both))),
    act=jax.jit(jax.vmap(environment.act)), advance=jax.jit(jax.vmap(environment.advance)),
    due=jax.jit(jax.vmap(environment.due)), outcome=jax.jit(jax.vmap(environment.outcome)),
    script=jax.jit(jax.vmap(lambda names, keys, state: jax.vmap(
      players.make_scripted(), (0, 0, None, 0))(names, keys, state, both))))


def start(game, seed=0, swap_sides=False):
  return game.reset(jax.random.split(jax.random.key(seed), GAMES),
                    jnp.broadcast_to(jnp.asarray(swap_sides), (GAMES,)))


def host(tree):
  return jax.tree.map(np.asarray, tree)


def action(name="no_op", delay=1, rows=(), target=0, x=0.0, y=0.0, queued=0, repeat=0):
  """An action of one player; x and y in map units from the middle."""
  units = np.full(RULES.max_selected, RULES.max_entities)
  units[:len(rows)] = rows
  location = place_to_location(RULES, jnp.float32(x), jnp.float32(y))
  return types.Action(
    function=np.int16(FUNCTION(name)), delay=np.int16(delay), queued=np.uint8(queued),
    repeat=np.uint8(repeat), units=units.astype(np.int16), target_unit=np.int16(target),
    location=np.int32(location))


def actions(by_game):
  """Actions [G, 2] from {(game, player): action}; no_op for the others."""
  rows = [[by_game.get((g, p), action()) for p in range(2)] for g in range(GAMES)]
  flat = [a for row in rows for a in row]
  return jax.tree.map(lambda *values: np.stack(values).reshape(GAMES, 2, *values[0].shape), *flat)


def everyone(one):
  return actions({(g, 0): one for g in range(GAMES)})


def play(game, state, names, seed, steps, visit=lambda state: None):
  """Plays scripted games; calls `visit` with the state after each step."""
  names = jnp.asarray(names, jnp.int32)
  for step in range(steps):
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), step), (GAMES, 2))
    state = game.advance(game.act(state, game.script(names, keys, state), game.due(state)))
    visit(state)
  return state


ALL_PAIRS = np.array([(i, j) for i in range(4) for j in range(4)])
