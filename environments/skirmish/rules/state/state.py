"""The state of a game: arrays split by player, `[2, ...]`, so that combat is n x n per side.

The n slots of a player are S structures, those that shoot last, then M units. Positions are in map
units from the middle of the map, x to the right and y downwards. A half turn of the map is then a
change of sign, and a rotated game is the same game bit for bit. Resources are split by the half of
the map they lie in; a player counts those of its own half first.

Arrays that a tier does not need (shields, energy, larvae) have size zero.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish.rules.tables import tables

Array = jax.Array  # a state copied to the host holds numpy arrays instead


class Orders(NamedTuple):
  """Unit orders, [2, M] each."""

  verb: Array  # int32, constants.IDLE to constants.ABOARD
  x: Array  # float32: destination
  y: Array
  target: Array  # int32: a slot of the opponent, a resource or an own slot, by verb; of units
  # aboard, their transport; of transports that unload, one passenger, or -1 for all
  product: Array  # int32, local type of the structure to build


class Commands(NamedTuple):
  """The players' commands since the last step, [2, ...]."""

  function: Array  # int32, local; 0 is none
  selected: Array  # [2, n] bool
  x: Array  # float32
  y: Array
  target_kind: Array  # int32, constants.NO_TARGET to constants.RESOURCE
  target: Array  # int32, an index of that kind
  queued: Array  # bool
  repeat: Array  # int32, 1 to 3


class Score(NamedTuple):
  """Cumulative scores, [2] int32; values in minerals plus vespene, idle times in game loops."""

  idle_production: Array
  idle_workers: Array
  units: Array
  structures: Array
  killed_units: Array
  killed_structures: Array
  collected: Array
  spent: Array
  collected_vespene: Array
  spent_vespene: Array


class Memory(NamedTuple):
  """The players' sight and memory."""

  seen: Array  # [2, n] bool: the opponent's slots in sight
  visible: Array  # [2, H, W / 32] uint32: cells in sight, one bit each
  explored: Array  # [2, H, W / 32] uint32: cells ever in sight
  kind: Array  # [2, S] int32: the opponent's structures as last seen, 0 for none
  x: Array  # [2, S] float32
  y: Array
  health: Array
  patches: Array  # [2, R] int32: contents as last seen
  # [2] bool: an enemy was in sight at some time; only the hashes of recordings need it.
  met: Array
  detected: Array  # [2, M] or [2, 0] bool: the opponent's units that a detector covers


class State(NamedTuple):
  """A game. n slots a player, S of them structures, M units; R resources."""

  loop: Array  # [] int32
  side: Array  # [2] float32: +1 for the first starting position, -1 for the opposite one
  match_up: base.MatchUp
  race: Array  # [2] int32, indices of constants.RACES
  # Slots.
  kind: Array  # [2, n] int32: local types, 0 where empty
  x: Array  # [2, n] float32
  y: Array
  health: Array  # [2, n] float32
  shield: Array  # [2, n] or [2, 0] float32
  energy: Array  # [2, n] or [2, 0] float32
  hurt: Array  # [2, n] bool: damaged in the last step
  calm: Array  # [2, n] or [2, 0] int32: loops since the last damage
  # Structures.
  unfinished: Array  # [2, S] int32: loops of construction left
  queue: Array  # [2, S, 5] int32: products in production, 0 past the end
  timers: Array  # [2, S, 5] int32: loops left of each
  rally: Array  # [2, S] bool: whether a rally point is set
  rally_x: Array  # [2, S] float32
  rally_y: Array
  larvae: Array  # [2, S] or [2, 0] int32
  larva_loops: Array  # [2, S] or [2, 0] int32: until the next larva
  injected: Array  # [2, S] or [2, 0] int32: loops until an injection hatches, 0 for none
  boosted: Array  # [2, S] or [2, 0] int32: loops of chrono boost left
  add_on: Array  # [2, S] or [2, 0] int32: one above the slot of its add-on, 0 for none
  # Units.
  orders: Orders
  next_orders: Orders  # queued orders; verb IDLE for none
  cooldown: Array  # [2, F] float32: loops until the weapon is ready; F: armed structures, then M
  trip: Array  # [2, M] int32: work done at a patch, up to mining.work_length
  cargo: Array  # [2, M] int32: minerals or vespene carried
  cargo_gas: Array  # [2, M] or [2, 0] bool: whether the current or last cargo is vespene
  stimmed: Array  # [2, M] or [2, 0] int32: loops of stim left
  # Loops left of a Guardian Shield; below 0: of the life of a hallucination.
  spell_loops: Array  # [2, M] or [2, 0] int32
  cloaked: Array  # [2, M] or [2, 0] bool: Banshees whose cloak is on
  cargo_taken: Array  # [2, M] or [2, 0] int32: the space that a transport's passengers take
  # Players.
  minerals: Array  # [2] int32
  vespene: Array  # [2] int32
  upgrades: Array  # [2, U] bool
  repair_debt: Array  # [2] float32: cost of repairs not yet paid, below one mineral
  scan_x: Array  # [2] float32: position of the active scan
  scan_y: Array
  scan_loops: Array  # [2] int32, 0 for none
  field_x: Array  # [2, k] or [2, 0] float32: positions of k Force Fields
  field_y: Array
  field_loops: Array  # [2, k] or [2, 0] int32: left of each, 0 for none
  patches: Array  # [2, R / 2] int32: contents of patches and geysers
  commands: Commands
  next_loop: Array  # [2] int32: when the player is due
  last_loop: Array  # [2] int32: when it acted last
  last_function: Array  # [2] int32, dense
  last_queued: Array  # [2] int32
  last_repeat: Array  # [2] int32, 0 to 2
  refused: Array  # [2] int32: the action result of the last action, 0 if it had an effect
  was_selected: Array  # [2, n] bool
  was_targeted: Array  # [2, 2 n + R] bool: own slots, the opponent's, resources
  memory: Memory
  score: Score
  executed: types.Statistics  # [2, ...]
  last_event: Array  # [] int32: loop of the last income, product or damage
  seed: Array  # [2] uint32: of the variations of scripted players
  winner: Array  # [] int32: 0 or 1, 2 for a draw, -1 during the game


def idle_orders(rules: tables.Rules) -> Orders:
  """Orders of idle units."""
  shape = (2, rules.tier.units)
  integers, floats = jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.float32)
  return Orders(integers, floats, floats, integers, integers)


def no_commands(rules: tables.Rules) -> Commands:
  """Commands of players who gave none."""
  integers, floats = jnp.zeros(2, jnp.int32), jnp.zeros(2, jnp.float32)
  return Commands(
    function=integers, selected=jnp.zeros((2, rules.tier.slots), bool), x=floats, y=floats,
    target_kind=integers, target=integers, queued=jnp.zeros(2, bool), repeat=integers + 1)
