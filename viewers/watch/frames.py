"""The state of a recorded game at every step, as small integer arrays for pages and pictures.

Pure functions of a replay and its states.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules.interface import observation
from starleague.environments.skirmish.rules.interface.entities import EntityRows, entity_rows
from starleague.environments.skirmish.rules.state.arrays import look_up
from starleague.environments.skirmish.rules.state.queries import both_halves, resource_positions
from starleague.environments.skirmish.rules.state.state import State
from starleague.environments.skirmish.rules.tables import constants, tables

Array = jax.Array | np.ndarray

PLACES = 65535  # units of `Frames` positions in the map's side
# Bits of `Frames.flags`.
HURT, SEEN, FIRED, STIMMED, BOOSTED, INJECTED, MINERALS, VESPENE = (1 << bit for bit in range(8))
FIGURES = ("minerals", "vespene", "food_used", "food_cap", "workers", "army", "mined",
           "mined_vespene", "destroyed")
_CHUNK = 256  # states for one call of a compiled function


class Frames(NamedTuple):
  """T states of a game with n slots per player, S of them for structures, and R patches."""

  kind: np.ndarray  # [T, 2, n] uint8: local type, 0 for an empty slot
  x: np.ndarray  # [T, 2, n] uint16: distance from the left edge, in 1 / PLACES of the map's side
  y: np.ndarray  # [T, 2, n] uint16: distance from the top edge, likewise
  health: np.ndarray  # [T, 2, n] uint16, rounded up
  shield: np.ndarray  # [T, 2, n] uint16, rounded up
  flags: np.ndarray  # [T, 2, n] uint8: HURT or FIRED in the last step, SEEN by the enemy, ...
  built: np.ndarray  # [T, 2, S] uint8: construction progress, percent
  product: np.ndarray  # [T, 2, S] uint8: product in production, 0 for none
  trained: np.ndarray  # [T, 2, S] uint8: production progress, percent
  figures: np.ndarray  # [T, 2, FIGURES] uint16
  patches: np.ndarray  # [T, R] uint16: contents
  visible: np.ndarray  # [T, 2, H, W / 32] uint32: cells in a player's sight, one bit each
  known_kind: np.ndarray  # [T, 2, S] uint8: enemy structures as the player last saw them
  known_x: np.ndarray  # [T, 2, S] uint16
  known_y: np.ndarray  # [T, 2, S] uint16
  known_patches: np.ndarray  # [T, 2, R] uint16: contents as the player last saw them
  scan: np.ndarray  # [T, 2, 3] uint16: x, y and remaining game loops of a scan


class Derived(NamedTuple):
  """Values that the engine computes from T states."""

  figures: np.ndarray  # [T, 2, FIGURES]
  patches: np.ndarray  # [T, R] contents, those of player 1's half first
  rows: EntityRows  # [T, 2, 2 n + R] observation rows of both players


def rules_of(replay: Replay) -> tables.Rules:
  """Returns the constants of a replay's game."""
  return tables.make_rules(*replay.game)


@functools.lru_cache(maxsize=4)
def _derive_chunk(rules: tables.Rules) -> Callable[[State], Any]:
  """Compiles the computation of `Derived` for _CHUNK states."""

  def derive_one(state: State):
    columns = observation.player_columns(rules, state)
    score = state.score
    value = dict(zip(types.PLAYER_COLUMNS, columns.T, strict=True))
    workers = look_up(rules.types.worker, state.kind).sum(axis=1).astype("int32")
    figures = (value["minerals"], value["vespene"], value["food_used"], value["food_cap"], workers,
               value["army_count"], score.collected, score.collected_vespene,
               score.killed_units + score.killed_structures)
    return (jnp.stack(figures, axis=1), both_halves(state.patches)[0],
            entity_rows(rules, state))

  return jax.jit(jax.vmap(derive_one))


def derive(rules: tables.Rules, states: State) -> Derived:
  """Computes figures, patch contents and observation rows of states [T, ...]."""
  total = len(states.loop)
  chunks = []
  for first in range(0, total, _CHUNK):
    indices = np.minimum(np.arange(first, first + _CHUNK), total - 1)  # one shape for all chunks
    chunks.append(_derive_chunk(rules)(jax.tree.map(lambda x, at=indices: x[at], states)))
  return Derived(*jax.tree.map(lambda *parts: np.concatenate(parts)[:total], *chunks))


def make_frames(rules: tables.Rules, states: State, derived: Derived) -> Frames:
  """Converts states [T, ...] to frames."""
  s, memory = rules.tier.structures, states.memory
  product = states.queue[..., 0]
  shield = states.shield if rules.has_shields else np.zeros_like(states.health)
  scan = np.stack([_place(rules, states.scan_x), _place(rules, states.scan_y),
                   _clipped(states.scan_loops, np.uint16)], axis=-1)
  x, y = _shown(rules, states)
  return Frames(
    kind=_clipped(states.kind, np.uint8), x=_place(rules, x), y=_place(rules, y),
    health=_clipped(np.ceil(states.health), np.uint16),
    shield=_clipped(np.ceil(shield), np.uint16), flags=_flags(rules, states),
    built=_percent(rules, states.unfinished, states.kind[..., :s]),
    product=_clipped(product, np.uint8), trained=_percent(rules, states.timers[..., 0], product),
    figures=_clipped(derived.figures, np.uint16), patches=_clipped(derived.patches, np.uint16),
    visible=np.asarray(memory.visible), known_kind=_clipped(memory.kind, np.uint8),
    known_x=_place(rules, memory.x), known_y=_place(rules, memory.y),
    known_patches=_clipped(memory.patches, np.uint16), scan=scan)


def _shown(rules: tables.Rules, states: State) -> tuple[np.ndarray, np.ndarray]:
  """Returns the places of slots, [T, 2, n] each: passengers are where their transport is."""
  target, s = np.asarray(states.orders.target), rules.tier.structures
  verb = np.asarray(states.orders.verb)
  carrier = np.broadcast_to(np.arange(rules.tier.slots), states.kind.shape).copy()
  carrier[..., s:] = np.where(verb == constants.ABOARD, target, carrier[..., s:])
  return (np.take_along_axis(np.asarray(states.x), carrier, axis=2),
          np.take_along_axis(np.asarray(states.y), carrier, axis=2))


def _flags(rules: tables.Rules, states: State) -> np.ndarray:
  """Computes `Frames.flags`: [T, 2, n] uint8."""
  s = rules.tier.structures
  # The cooldown of a weapon grows only when it fires.
  fired = np.diff(states.cooldown, axis=0, prepend=states.cooldown[:1]) > 0.5
  flags = HURT * states.hurt + FIRED * np.pad(
    fired, ((0, 0), (0, 0), (rules.tier.unarmed, 0))).astype(np.uint8)
  # A player's `seen` marks the enemy's slots.
  flags += SEEN * states.memory.seen[:, ::-1]
  for bit, loops, first in ((STIMMED, states.stimmed, s), (BOOSTED, states.boosted, 0),
                            (INJECTED, states.injected, 0)):
    if loops.size:
      flags[..., first:first + loops.shape[-1]] |= (bit * (loops > 0)).astype(np.uint8)
  vespene = states.cargo_gas if rules.has_gas else np.zeros_like(states.cargo, bool)
  load = np.where(vespene, VESPENE, MINERALS).astype(np.uint8)
  flags[..., s:] |= np.where(states.cargo > 0, load, 0).astype(np.uint8)
  return np.asarray(flags * (states.kind > 0), np.uint8)


def _place(rules: tables.Rules, values: Array) -> np.ndarray:
  """Converts map coordinates to 1 / PLACES of the map's side: uint16."""
  part = (np.asarray(values) + rules.half) / rules.tier.map_size
  return np.round(PLACES * np.clip(part, 0, 1)).astype(np.uint16)


def _percent(rules: tables.Rules, left: Array, product: Array) -> np.ndarray:
  """Converts remaining game loops of products to progress in percent: uint8."""
  left, product = np.asarray(left), np.asarray(product)
  loops = np.maximum(rules.products.loops[product], 1)
  return np.clip(100 - 100 * left / loops, 0, 100).astype(np.uint8) * (product > 0)


def _clipped(values: Array, dtype: type[np.unsignedinteger]) -> np.ndarray:
  return np.clip(np.asarray(values), 0, np.iinfo(dtype).max).astype(dtype)


def patch_places(replay: Replay) -> tuple[np.ndarray, np.ndarray]:
  """Returns the centres of the mineral patches and geysers.

  Returns:
    [R, 2]: x and y of `Frames.patches`, fractions of the map's side from its left and top.
    [2, R, 2]: the same for each player's `Frames.known_patches`, whose order starts at home.
  """
  rules = rules_of(replay)
  first = -1.0 if replay.match_up.swap_sides else 1.0
  x, y = resource_positions(rules, jnp.array([first, -first], jnp.float32))
  places = np.stack([x, y], axis=-1) / rules.tier.map_size + 0.5
  return places[0], places


def visible_cells(visible: np.ndarray) -> np.ndarray:
  """Unpacks `Frames.visible`: [..., H, W / 32] uint32 to [..., H, W] bool."""
  little = np.ascontiguousarray(visible, "<u4")
  return np.unpackbits(little.view(np.uint8), axis=-1, bitorder="little") > 0


def terrain(replay: Replay) -> dict[str, list[str]] | None:
  """Returns the map's passable and high cells, a string of 0 and 1 per row; None if it is flat."""
  rules = rules_of(replay)
  if rules.terrain is None:
    return None
  at = int(replay.match_up.map_index) % len(rules.terrain.passable)
  return {name: ["".join("01"[int(cell)] for cell in row) for row in table[at]]
          for name, table in (("passable", rules.terrain.passable), ("high", rules.terrain.high))}
