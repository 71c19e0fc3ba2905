"""What a viewer of a replay shows: pictures of every step as small arrays, and what was done.

Pure functions of a replay and its states; `pack` writes the arrays as text for a page.
"""

import base64
import functools
import re
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules import (
  action_results,
  constants,
  maps,
  observation,
  tables,
)
from starleague.environments.skirmish.rules.arrays import look_up
from starleague.environments.skirmish.rules.constants import SCAN_RADIUS
from starleague.environments.skirmish.rules.queries import (
  both_halves,
  is_geyser,
  resource_positions,
)
from starleague.environments.skirmish.rules.state import State

PLACES = 65535  # a place is a fraction of the map's side, in as many parts
HURT, SEEN, FIRED, STIMMED, BOOSTED, INJECTED, MINERALS, VESPENE = (  # Frames.flags
  1 << bit for bit in range(8))
FIGURES = ("minerals", "vespene", "food_used", "food_cap", "workers", "army", "mined",
           "mined_vespene", "destroyed")
_SLICE = 256  # states looked at by one call of a compiled function


class Frames(NamedTuple):
  """Pictures of T states of a game with n slots a player, S of them structures, and R patches."""

  kind: np.ndarray  # [T, 2, n] uint8: local types, 0 where empty
  x: np.ndarray  # [T, 2, n] uint16: fraction of the map's side, of PLACES, from its left
  y: np.ndarray  # [T, 2, n] uint16: from its top
  health: np.ndarray  # [T, 2, n] uint16, rounded up
  shield: np.ndarray  # [T, 2, n] uint16, rounded up
  flags: np.ndarray  # [T, 2, n] uint8: HURT or FIRED in the step before, SEEN by the enemy, ...
  built: np.ndarray  # [T, 2, S] uint8: percent of its construction
  product: np.ndarray  # [T, 2, S] uint8: the product in the making, 0 for none
  trained: np.ndarray  # [T, 2, S] uint8: percent
  figures: np.ndarray  # [T, 2, FIGURES] uint16
  patches: np.ndarray  # [T, R] uint16: contents
  visible: np.ndarray  # [T, 2, H, W / 32] uint32: cells in a player's sight, a bit each
  known_kind: np.ndarray  # [T, 2, S] uint8: the enemy's structures as a player last saw them
  known_x: np.ndarray  # [T, 2, S] uint16
  known_y: np.ndarray  # [T, 2, S] uint16
  known_patches: np.ndarray  # [T, 2, R] uint16: contents as a player last saw them
  scan: np.ndarray  # [T, 2, 3] uint16: x, y, game loops left of what is looked at from above


class Line(NamedTuple):
  """An action, or an entry of a build order, in words."""

  step: int  # environment steps played before it
  player: int
  what: str
  detail: str = ""


def words(name: str) -> str:
  """A name of the game in words: CommandCenter is Command Center."""
  return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name)


def function_words(name: str) -> str:
  """A function's name in words: Effect_Stim_quick is Stim."""
  name = re.sub(r"_(pt|unit|quick|autocast)$", "", name)
  name = re.sub(r"^(Harvest|Effect|Morph)_", "", name)
  return {"HoldPosition": "Hold position", "SiegeMode": "Siege mode", "Rally_Units": "Rally",
          "ChronoBoostEnergyCost": "Chrono boost", "InjectLarva": "Inject larvae",
          "Rally_Workers": "Rally workers", "Cancel_Last": "Cancel last",
          "Return": "Return cargo"}.get(name, words(name))


def upgrade_words(name: str) -> str:
  """An upgrade's name in words: TerranInfantryWeaponsLevel1 is Infantry Weapons 1."""
  return words(re.sub(r"^(Terran|Protoss|Zerg)", "", name)).replace(" Level", " ")


def product_words(rules: tables.Rules) -> list[str]:
  """The names of all that can be made, by local product."""
  return [*map(words, rules.types.names), *map(upgrade_words, rules.upgrades.names)]


def map_name(replay: Replay) -> str:
  """The name of a game's map."""
  flat = rules_of(replay).terrain is None
  return maps.NAMES[0 if flat else int(replay.match_up.map_index) % len(maps.NAMES)]


def clock(step: float) -> str:
  """A step's time in the game, m:ss."""
  seconds = int(step * constants.LOOPS_PER_STEP / types.GAME_LOOPS_PER_SECOND)
  return f"{seconds // 60}:{seconds % 60:02d}"


def rules_of(replay: Replay) -> tables.Rules:
  """The constants of a replay's game."""
  return tables.make_rules(*replay.game)


def outcome(replay: Replay) -> str:
  """How a game ended, in words."""
  if replay.winner in (0, 1):
    return f"{replay.players[replay.winner]} (player {replay.winner + 1}) won"
  return "a draw" if replay.winner == 2 else "broken off"


def result(replay: Replay) -> str:
  """How a game ended, and when."""
  return f"{outcome(replay)} at {clock(replay.steps)}"


@functools.lru_cache(maxsize=4)
def _looker(rules: tables.Rules):
  """(states [_SLICE, ...]) -> what is easier asked of the engine than worked out again."""

  def look(state):
    columns = observation.player_columns(rules, state)
    score = state.score
    value = dict(zip(types.PLAYER_COLUMNS, columns.T, strict=True))
    workers = look_up(rules.types.worker, state.kind).sum(axis=1).astype("int32")
    figures = (value["minerals"], value["vespene"], value["food_used"], value["food_cap"], workers,
               value["army_count"], score.collected, score.collected_vespene,
               score.killed_units + score.killed_structures)
    return jax.numpy.stack(figures, axis=1), both_halves(state.patches)[0], observation.entity_rows(
      rules, state)

  return jax.jit(jax.vmap(look))


def _look(rules: tables.Rules, states: State) -> tuple[np.ndarray, np.ndarray, observation.EntityRows]:
  """Figures [T, 2, FIGURES], contents of patches [T, R], rows of both players [T, 2, ...]."""
  total = len(states.loop)
  found = []
  for first in range(0, total, _SLICE):
    indices = np.minimum(np.arange(first, first + _SLICE), total - 1)
    found.append(_looker(rules)(jax.tree.map(lambda x, at=indices: x[at], states)))
  return jax.tree.map(lambda *parts: np.concatenate(parts)[:total], *found)


def make_frames(replay: Replay, states: State) -> Frames:
  """The pictures of a game's states [T, ...]."""
  return _frames(rules_of(replay), states, *_look(rules_of(replay), states)[:2])


def _frames(rules: tables.Rules, states: State, figures: np.ndarray,
            patches: np.ndarray) -> Frames:
  s, memory = rules.tier.structures, states.memory

  def place(values):
    part = (values + rules.half) / rules.tier.map_size
    return np.round(PLACES * np.clip(part, 0, 1)).astype(np.uint16)

  def percent(left, kind):
    loops = np.maximum(rules.products.loops[kind], 1)
    return np.clip(100 - 100 * left / loops, 0, 100).astype(np.uint8) * (kind > 0)

  def small(values, dtype):
    return np.clip(values, 0, np.iinfo(dtype).max).astype(dtype)

  product = states.queue[..., 0]
  # A cooldown that grew: it shot.
  fired = np.diff(states.cooldown, axis=0, prepend=states.cooldown[:1]) > 0.5
  flags = HURT * states.hurt + FIRED * np.pad(
    fired, ((0, 0), (0, 0), (rules.tier.unarmed, 0))).astype(np.uint8)
  # A player's `seen` tells the enemy's slots that it sees.
  flags += SEEN * memory.seen[:, ::-1]
  for bit, loops, first in ((STIMMED, states.stimmed, s), (BOOSTED, states.boosted, 0),
                            (INJECTED, states.injected, 0)):
    if loops.size:
      flags[..., first:first + loops.shape[-1]] |= (bit * (loops > 0)).astype(np.uint8)
  vespene = states.cargo_gas if rules.has_gas else np.zeros_like(states.cargo, bool)
  load = np.where(vespene, VESPENE, MINERALS).astype(np.uint8)
  flags[..., s:] |= np.where(states.cargo > 0, load, 0).astype(np.uint8)
  shield = states.shield if rules.has_shields else np.zeros_like(states.health)
  scan = np.stack([place(states.scan_x), place(states.scan_y),
                   small(states.scan_loops, np.uint16)], axis=-1)
  return Frames(
    kind=small(states.kind, np.uint8), x=place(states.x), y=place(states.y),
    health=small(np.ceil(states.health), np.uint16), shield=small(np.ceil(shield), np.uint16),
    scan=scan, flags=(flags * (states.kind > 0)).astype(
      np.uint8), built=percent(states.unfinished, states.kind[..., :s]),
    product=small(product, np.uint8), trained=percent(states.timers[..., 0], product),
    figures=small(figures, np.uint16), patches=small(patches, np.uint16),
    visible=memory.visible, known_kind=small(memory.kind, np.uint8), known_x=place(memory.x),
    known_y=place(memory.y), known_patches=small(memory.patches, np.uint16))


def patch_middles(replay: Replay) -> tuple[np.ndarray, np.ndarray]:
  """Where the patches of `Frames.patches` lie, and where those of each player's own memory do.

  Returns:
    [R, 2] and [2, R, 2]: x, y, fractions of the map's side from its left and its top.
  """
  rules = rules_of(replay)
  first = -1.0 if replay.match_up.swap_sides else 1.0
  x, y = resource_positions(rules, np.array([first, -first], np.float32))
  places = np.stack([x, y], axis=-1) / rules.tier.map_size + 0.5
  return places[0], places


def action_log(replay: Replay, states: State) -> list[Line]:
  """The actions in words, in order, with why if they were refused; those of nothing left out."""
  rules = rules_of(replay)
  sight = _look(rules, states)[2]
  lines = []
  for i, (step, player) in enumerate(zip(replay.step, replay.player, strict=True)):
    action = types.Action(*(values[i] for values in replay.actions))
    if action.function > 0:
      rows = np.where(sight.present[step, player], sight.row[step, player], -1)
      kinds = (states.kind[step, player], states.kind[step, 1 - player],
               states.memory.kind[step, player])
      what, detail = _in_words(rules, action, rows, *kinds)
      refused = int(states.refused[min(step + 1, len(states.refused) - 1), player])
      detail += f" ({action_results.MESSAGES[refused]})" if refused else ""
      lines.append(Line(int(step), int(player), what, detail))
  return lines


def _in_words(rules: tables.Rules, action: types.Action, rows: np.ndarray, own: np.ndarray,
              enemy: np.ndarray, remembered: np.ndarray) -> tuple[str, str]:
  """What is ordered, and of whom and where.

  Args:
    rules: the game's constants.
    action: a player's.
    rows: [2 n + R] its rows by slot, -1 for none.
    own: [n] local types.
    enemy: [n] local types.
    remembered: [S] local types of enemy structures as last seen.
  """
  n, s, functions = rules.tier.slots, rules.tier.structures, rules.functions
  function = int(action.function)
  local = functions.local[function]
  what = function_words(vocabulary.FUNCTIONS.names[function])
  uses = vocabulary.ARGUMENT_TABLE[function]
  details = []
  if uses[5]:
    slot = np.flatnonzero(rows == action.target_unit)
    if not slot.size:
      details.append("nothing")
    elif slot[0] >= 2 * n:
      details.append("vespene" if is_geyser(rules)[slot[0] - 2 * n] else "minerals")
    else:
      theirs = np.where(np.arange(n) < s, np.pad(remembered, (0, n - s)), 0)
      kind = own[slot[0]] if slot[0] < n else enemy[slot[0] - n] or theirs[slot[0] - n]
      details.append(f"{'own' if slot[0] < n else 'enemy'} {words(rules.types.names[kind])}")
  if uses[6]:
    size = rules.location_size
    scale = rules.tier.map_size / size
    x, y = (int((cell + 0.5) * scale) for cell in (action.location % size, action.location // size))
    details.append(f"at {x}, {y}")
  if uses[4]:
    picked = own[np.isin(rows[:n], action.units) & (rows[:n] >= 0)]
    picked = picked[functions.capable[local][picked]]
    kinds, counts = np.unique(picked, return_counts=True)
    crew = ", ".join(words(rules.types.names[kind]) + (f" × {count}" if count > 1 else "")
                     for kind, count in zip(kinds, counts, strict=True))
    word = {constants.TRAINING: "at", constants.BUILDING: "by"}.get(int(functions.kind[local]), "with")
    details.append(f"{word} {crew}" if crew else "by nobody who can")
  if uses[3] and action.repeat:
    what += f" × {int(action.repeat) + 1}"
  return what, " ".join(details)


def build_orders(states: State) -> list[Line]:
  """What each player made but workers, in order and as far as the engine counts (z)."""
  order = states.executed.build_order  # [T, 2, 20]
  lines = []
  for player in range(2):
    for entry in range(order.shape[2]):
      kind = order[-1, player, entry]
      if kind:
        step = int(np.argmax(order[:, player, entry] > 0))
        lines.append(Line(step, player, words(vocabulary.UNIT_TYPES.names[kind])))
  return lines


def researched(rules: tables.Rules, states: State) -> list[Line]:
  """What each player has researched, and when."""
  lines = []
  for player, upgrade in np.argwhere(states.upgrades[-1]):
    step = int(np.argmax(states.upgrades[:, player, upgrade]))
    lines.append(Line(step, int(player), upgrade_words(rules.upgrades.names[upgrade])))
  return sorted(lines)


def pack(array: np.ndarray) -> dict[str, Any]:
  """An array [T, ...] of integers as JSON holds it: type, shape, and base64 of its bytes, deflated.

  The bytes are little-endian, of what each value grew by since the time before, wrapping round, with
  time as the last axis: from one step to the next hardly anything changes.
  """
  late = np.moveaxis(array, 0, -1)
  growth = late.copy()
  growth[..., 1:] -= late[..., :-1]
  little = np.ascontiguousarray(growth, array.dtype.newbyteorder("<"))
  return {"type": array.dtype.name, "shape": list(array.shape),
          "data": base64.b64encode(zlib.compress(little.tobytes(), 9)).decode()}


def terrain(replay: Replay) -> dict[str, Any] | None:
  """The map's cliffs and high ground, a line of 0 and 1 a row; None where it is flat and open."""
  rules = rules_of(replay)
  if rules.terrain is None:
    return None
  at = int(replay.match_up.map_index) % len(rules.terrain.passable)
  return {name: ["".join("01"[int(cell)] for cell in row) for row in table[at]]
          for name, table in (("passable", rules.terrain.passable), ("high", rules.terrain.high))}


def page_types(rules: tables.Rules) -> list[dict[str, Any]]:
  """What a page needs to know of each local type."""
  types_ = rules.types
  return [{"name": words(name), "shape": name, "structure": bool(types_.structure[i]),
           "worker": bool(types_.worker[i]), "fighter": bool(types_.fighter[i]),
           "flying": bool(types_.flying[i]), "race": int(types_.race[i]),
           "radius": float(types_.radius[i]), "health": float(types_.health[i]),
           "shield": float(types_.shield[i]), "creep": bool(types_.larvae[i]),
           "reach": float(max(types_.ground.range[i], types_.air.range[i]))}
          for i, name in enumerate(types_.names)]


def page_data(replay: Replay, states: State) -> dict[str, Any]:
  """Everything that a page needs to show a game, as JSON holds it."""
  rules = rules_of(replay)
  figures, contents, _ = _look(rules, states)
  places, own_places = patch_middles(replay)
  return {
    "players": replay.players, "outcome": outcome(replay), "winner": replay.winner,
    "steps": replay.steps,
    "secondsPerStep": constants.LOOPS_PER_STEP / types.GAME_LOOPS_PER_SECOND,
    "mapSize": rules.tier.map_size, "figures": FIGURES,
    "races": [types.RACES[race] for race in replay.match_up.races],
    "types": page_types(rules), "products": product_words(rules),
    "patches": places.tolist(), "knownPatches": own_places.tolist(),
    "geysers": is_geyser(rules).tolist(), "patchMinerals": rules.tier.patch_minerals,
    "geyserVespene": rules.tier.geyser_vespene, "terrain": terrain(replay),
    "scanRadius": SCAN_RADIUS * rules.tier.sight_scale, "creepRadius": constants.CREEP_RADIUS,
    "upgrades": _rows(researched(rules, states)),
    "log": _rows(action_log(replay, states)), "builds": _rows(build_orders(states)),
    "arrays": {name: pack(values)
               for name, values in _frames(rules, states, figures, contents)._asdict().items()}}


def _rows(lines: Sequence[Line]) -> list[list[Any]]:
  return [list(line) for line in lines]
