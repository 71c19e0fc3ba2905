"""Games of the large tier, with its add-ons, morphs, warp gates and transports, for tests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules import environment
from starleague.environments.skirmish.rules.interface import availability, commands
from starleague.environments.skirmish.rules.state.slots import Spawns
from starleague.environments.skirmish.rules.step import abilities, construction, economy
from starleague.environments.skirmish.rules.tables import constants, tables
from tests.environments.skirmish import states

RULES = tables.make_rules(*tables.GAME_CONFIGS["large"])
TYPES, PRODUCTS, S = RULES.types, RULES.products, RULES.tier.structures
LOCAL = {name: i for i, name in enumerate(TYPES.names)}
FUNCTION = {name: i for i, name in enumerate(RULES.functions.names)}
FREE = S + 20  # the first of the unit slots that tests use, beside the workers
TERRAN, ZERG, PROTOSS = 1, 2, 3  # indices of agent.types.RACES


@jax.jit
def step(state):
  """The parts of a step that make things, in its order. Returns the state and what begins."""
  can = availability.available(RULES, state)
  state, accepted = commands.give_orders(RULES, state, can)
  state = abilities.use_abilities(RULES, state, accepted)
  state = economy.train(RULES, state, accepted.trainers, accepted.command.product)
  state, add_ons = construction.attach(RULES, state, accepted)
  state, units = economy.finish_production(RULES, state)
  state, structures = construction.construct(RULES, state)
  none = jax.tree.map(jnp.zeros_like, state.commands)._replace(
    repeat=jnp.ones_like(state.commands.repeat))
  return state._replace(commands=none), Spawns(*(
    jnp.concatenate(parts, axis=1) for parts in zip(add_ons, units, structures, strict=True)))


def start(race, structures, swap_sides=False):
  """A game whose players have a town hall, workers, riches and finished structures.

  Args:
    race: of both players, an index of agent.types.RACES.
    structures: by slot, a type and its offset from the town hall, towards the map's middle.
    swap_sides: of the players.
  """
  state = states.first(RULES, races=(race, race), swap_sides=swap_sides)
  for slot, (name, dx, dy) in structures.items():
    for player in range(2):
      put(state, player, slot, name, state.x[player, 0] + state.side[player] * dx,
          state.y[player, 0] + state.side[player] * dy)
  state.minerals[:], state.vespene[:] = 1000, 1000
  return state


def put(state, player, slot, name, x, y):
  """Puts a finished structure into a slot."""
  kind = LOCAL[name]
  state.kind[player, slot], state.health[player, slot] = kind, TYPES.health[kind]
  state.x[player, slot], state.y[player, slot] = x, y


def place(state, player, slot, name, x, y, energy=0.0):
  """Puts a unit with full shields into a slot."""
  put(state, player, slot, name, x, y)
  state.energy[player, slot], state.shield[player, slot] = energy, TYPES.shield[LOCAL[name]]


def with_sentry(energy=200.0, at=(0.0, 0.0)):
  """A game of Protoss in which player 0 has a Sentry in the first unit slot of FREE."""
  state = start(PROTOSS, {})
  place(state, 0, FREE, "Sentry", *at, energy)
  return state


def order(state, function, slots, player=0, repeat=1, place=(0.0, 0.0), own=None):
  """The state with a player's command to slots, at a place or at an own slot."""
  given = jax.tree.map(np.array, state.commands)
  given.function[player], given.repeat[player] = FUNCTION[function], repeat
  given.x[player], given.y[player] = place
  if own is not None:
    given.target_kind[player], given.target[player] = constants.OWN, own
  given.selected[player] = np.isin(np.arange(RULES.tier.slots), slots)
  return state._replace(commands=given)


def play(state, steps=1):
  """The state some steps later, of numpy arrays."""
  for _ in range(steps):
    state, _ = step(state)
  return jax.tree.map(np.array, state)


@functools.cache
def _whole_step():
  """The compiled step of one game."""
  return jax.jit(functools.partial(environment.step, RULES))


def play_whole(state, steps=1):
  """The state some steps later, of numpy arrays, with mining, movement, combat and sight."""
  for _ in range(steps):
    state = _whole_step()(state)
  return jax.tree.map(np.array, state)


def loops(name):
  """Game loops that a type or an upgrade takes."""
  if name in LOCAL:
    return int(PRODUCTS.loops[LOCAL[name]])
  return int(PRODUCTS.loops[len(TYPES.names) + RULES.upgrades.names.index(name)])


def steps(name):
  """Steps until a product that begins now is finished."""
  return -(-loops(name) // constants.LOOPS_PER_STEP)


@functools.cache
def observe():
  """The compiled `available` of one game."""
  return jax.jit(functools.partial(availability.available, RULES))


def can(state, function, player=0):
  """Whether a function is available to a player."""
  return bool(observe()(state)[player, FUNCTION[function]])
