"""Batches of default games for tests: one of each pair of races on each map."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments import base
from starleague.environments.skirmish import make_skirmish
from starleague.environments.skirmish.bots import plans, players, scripts
from starleague.environments.skirmish.rules.tables import constants, tables

SIZES = {"max_entities": 192, "map_size": 64, "location_size": 128, "max_selected": 16}
RULES = tables.make_rules("default", **SIZES)
TIER, TYPES = RULES.tier, RULES.types
S, N, R = TIER.structures, TIER.slots, TIER.resources
LOCAL = {name: i for i, name in enumerate(TYPES.names)}
FUNCTION = {name: i for i, name in enumerate(RULES.functions.names)}
UPGRADE = {name: i for i, name in enumerate(RULES.upgrades.names)}
NAMES = scripts.names_of("default")
MAPS = 3
# Indices of types.RACES: Terran, Protoss, Zerg, as constants.RACES orders them.
RACES = tuple(types.RACES.index(name.lower()) for name in constants.RACES)
MATCH_UPS = [(one, other, ground) for one in RACES for other in RACES for ground in range(MAPS)]
GAMES = len(MATCH_UPS)
# Optimising pays for programs that run for thousands of steps (see tests/conftest.py).
_OPTIMISED = {"xla_backend_optimization_level": 2}


class Step(NamedTuple):
  """One step of one game, of numpy arrays without a batch axis."""

  before: object  # State
  actions: object  # [2, ...]
  due: np.ndarray  # [2] bool
  acted: object  # State, with the commands noted
  after: object  # State


class Record(NamedTuple):
  """Parts of games kept for tests."""

  steps: list  # of Step
  states: list  # of State [G, ...]: all games, every 25 steps


class Compiled(NamedTuple):
  """The environment over GAMES games, each function compiled once for all tests."""

  reset: object  # (keys, races [G, 2], maps [G], swap_sides [G]) -> states
  observe: object  # states -> ([G, 2] observations, privileged)
  act: object  # (states, actions, acts [G, 2]) -> states
  advance: object
  due: object
  script: object  # (names [G, 2], keys [G, 2], states) -> actions [G, 2]


def compile_game(game=tables.GAME_CONFIGS["default"]) -> Compiled:
  environment = make_skirmish(**game._asdict())
  decide = players.make_scripted(**game._asdict())
  def reset(key, races, ground, swap_sides):
    return environment.reset(key, base.make_match_up(races, ground, swap_sides))

  def observe(state):
    return jax.vmap(environment.observe, (None, 0))(state, jnp.arange(2))

  def script(names, keys, state):
    return jax.vmap(decide, (0, 0, None, 0))(names, keys, state, jnp.arange(2))

  return Compiled(
    reset=jax.jit(jax.vmap(reset)), observe=jax.jit(jax.vmap(observe)),
    act=jax.jit(jax.vmap(environment.act)),
    advance=jax.jit(jax.vmap(environment.advance), compiler_options=_OPTIMISED),
    due=jax.jit(jax.vmap(environment.due)),
    script=jax.jit(jax.vmap(script), compiler_options=_OPTIMISED))


def host(tree):
  return jax.tree.map(np.asarray, tree)


def start(game, seed=0, match_ups=None, swap_sides=False):
  """The first states of GAMES games, of MATCH_UPS by default."""
  chosen = np.array(MATCH_UPS if match_ups is None else match_ups, np.int32)
  chosen = np.broadcast_to(chosen, (GAMES, 3))
  return game.reset(jax.random.split(jax.random.key(seed), GAMES), chosen[:, :2], chosen[:, 2],
                    jnp.broadcast_to(jnp.asarray(swap_sides), (GAMES,)))


def choose(game, state, names, seed, step):
  """The scripted players' actions at a step."""
  keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), step), (GAMES, 2))
  return game.script(jnp.asarray(names, jnp.int32), keys, state)


def one(tree, g):
  """One game of many, of numpy arrays."""
  return jax.tree.map(lambda values: values[g], tree)


def furnish(state, games):
  """Gives both players of some games one of each type of their race, and money.

  The score counts the money as not spent. Structures other than Zerg's are damaged, to be repaired.

  Args:
    state: [G, ...]; a copy is returned.
    games: indices.
  """
  state = jax.tree.map(np.array, state)
  for g in games:
    for p in range(2):
      side = state.side[g, p]
      own = [i for i in range(1, len(TYPES.names)) if TYPES.race[i] == state.race[g, p]]
      plain = [i for i in own if TYPES.structure[i] and not TYPES.fighter[i]]
      armed = [i for i in own if TYPES.structure[i] and TYPES.fighter[i]]
      units = [i for i in own if not TYPES.structure[i]]
      feeds = [i for i in own if TYPES.gives_food[i] and not TYPES.townhall[i]][0]
      plain.remove(state.kind[g, p, 0])
      free = S + int((state.kind[g, p, S:] > 0).sum())
      slots = {**{1 + i: kind for i, kind in enumerate(plain)},
               **{TIER.unarmed + i: kind for i, kind in enumerate(armed)},
               **{free + i: kind for i, kind in enumerate(units)}}
      for i in range(2):  # food for more units
        slots[len(plain) + 1 + i if TYPES.structure[feeds] else free + len(units) + i] = feeds
      for i, (slot, kind) in enumerate(slots.items()):
        state.kind[g, p, slot] = kind
        state.x[g, p, slot] = side * (-12.0 + 3.7 * (i % 4))
        state.y[g, p, slot] = side * (-13.0 + 3.7 * (i // 4))
        state.health[g, p, slot], state.shield[g, p, slot] = TYPES.health[kind], TYPES.shield[kind]
        if TYPES.structure[kind] and TYPES.race[kind] != constants.RACES.index("Zerg"):
          state.health[g, p, slot] /= 2
        state.energy[g, p, slot] = min(TYPES.energy[kind], 150)
      state.minerals[g, p] += 2000
      state.score.spent[g, p] -= 2000
      state.vespene[g, p] += 2000
      state.score.spent_vespene[g, p] -= 2000
  return state


def mixed_names(step, rng):
  """The players of a step: a script that the game keeps, or sometimes random legal actions.

  Scripts produce rich states, in which the random player tries all functions.
  """
  strategies = [i for i, name in enumerate(NAMES) if name in plans.STRATEGIES]
  kept = np.random.default_rng(5).choice(strategies, (GAMES, 2))
  return np.where(rng.random((GAMES, 2)) < (0.1 if step < 300 else 0.3), NAMES.index("L0"), kept)


def record(game, steps, every, seed=0) -> Record:
  """Plays GAMES games; keeps every n-th step of each, and all games every 25 steps.

  Also keeps the first three steps with each function and each verb. In every other pair of races
  both players start with one of each type.
  """
  rng = np.random.default_rng(seed)
  state = furnish(host(start(game, seed)), [g for g in range(GAMES) if g // 3 % 2 == 0])
  found, states = [], []
  times, verbs = np.zeros(len(FUNCTION), int), np.zeros(constants.RETURN + 1, int)
  for step in range(steps):
    actions, due = choose(game, state, mixed_names(step, rng), seed + 1, step), game.due(state)
    acted = game.act(state, actions, due)
    after = game.advance(acted)
    before, chosen, turn, noted, later = host((state, actions, due, acted, after))
    for g in np.flatnonzero(before.winner < 0):
      new = [f for f in noted.commands.function[g] if f and times[f] < 3]
      times[new] += 1
      now = [verb for verb in np.unique(before.orders.verb[g]) if verbs[verb] < 3]
      verbs[now] += 1
      if new or now or (step + g) % every == 0:
        found.append(jax.tree.map(np.copy, Step(
          *(one(tree, g) for tree in (before, chosen, turn, noted, later)))))
    if step % 25 == 24:
      states.append(later)
    state = after
  return Record(found, states)


def give(state, function, *, player=0, slots=(), x=0.0, y=0.0, target=None, kind=0, queued=False,
         repeat=1):
  """States [G, ...] of numpy arrays with a command of a player."""
  commands = jax.tree.map(np.array, state.commands)
  commands.function[:, player] = FUNCTION[function]
  commands.selected[:, player] = False
  commands.selected[:, player, list(slots)] = True
  commands.x[:, player], commands.y[:, player] = x, y
  commands.target_kind[:, player] = kind
  commands.target[:, player] = 0 if target is None else target
  commands.queued[:, player], commands.repeat[:, player] = queued, repeat
  return state._replace(commands=commands)


def dense(name):
  """The vocabulary's index of a function."""
  return vocabulary.FUNCTIONS.index(name)
