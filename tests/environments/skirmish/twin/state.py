"""A game as plain Python objects, read from the engine's state and compared with it.

Statistics are read from `units.csv` and `upgrades.csv` by name, not from the engine's tables.
"""

import csv
import dataclasses
import pathlib

import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules.tables import tables

FOLDER = pathlib.Path(tables.__file__).parent
IDLE, MOVE, ATTACK, ATTACK_UNIT, HOLD, GATHER, BUILD, CONSTRUCT, PATROL, REPAIR, RETURN = range(
  11)
HALLS = ("CommandCenter", "OrbitalCommand", "Nexus", "Hatchery")
GAS = ("Refinery", "Assimilator", "Extractor")
SUPPLY = ("SupplyDepot", "Pylon", "Overlord")
WORKERS = ("SCV", "Probe", "Drone")
COUNTS_AS = {"OrbitalCommand": "CommandCenter"}


class Table:
  """The rows of both tables by name, and the numbers of the tier."""

  def __init__(self, rules):
    self.rules, self.tier = rules, rules.tier
    with (FOLDER / "units.csv").open(newline="") as file:
      rows = {row["name"]: row for row in csv.DictReader(file)}
    with (FOLDER / "upgrades.csv").open(newline="") as file:
      upgrades = {row["name"]: row for row in csv.DictReader(file)}
    self.names = list(rules.tier.types)
    self.by_id = {int(rows[name]["id"]): name for name in self.names}
    self.unit = {name: self._unit(rows[name]) for name in self.names}
    for name in self.names:
      row = rows[name]
      self.unit[name]["producer"] = self.by_id.get(int(row["producer"]))
      self.unit[name]["requirement"] = self.by_id.get(int(row["requirement"]))
      self.unit[name]["function"] = row["function"]
      # A morphed structure includes the price of its original.
      self.unit[name]["value"] += (
        self.unit[COUNTS_AS[name]]["value"] if name in COUNTS_AS else 0)
    self.upgrades = list(rules.upgrades.names)
    self.upgrade = {name: self._upgrade(upgrades[name]) for name in self.upgrades}
    self.makers = {u["producer"] for u in self.unit.values()
                   if not u["structure"] and u["producer"] in self.unit
                   and self.unit[u["producer"]]["structure"]}
    self.hatcheries = {u["producer"] for u in self.unit.values() if u["larva"]}

  def _unit(self, row):
    number = {key: float(value) for key, value in row.items()
              if value.replace(".", "", 1).replace("-", "", 1).isdigit()}
    tags = row["attributes"].split()
    tempo = self.tier.tempo
    unit = {
      "name": row["name"], "race": row["race"], "tags": tags, "structure": "Structure" in tags,
      "minerals": int(number["minerals"]), "vespene": int(number["vespene"]),
      "food": max(number["food"], 0.0), "gives": max(-number["food"], 0.0),
      "loops": -int(-number["time"] // tempo), "brood": int(number["brood"]),
      "larva": bool(number["larva"]), "flying": bool(number["flying"]),
      "speed": number["speed"] / 4, "sight": number["sight"] * self.tier.sight_scale,
      "line": bool(number["line"]), "splash": number["splash"],
      **{key: number[key] for key in ("health", "shield", "energy", "armor", "radius")}}
    unit["value"] = int((unit["minerals"] + unit["vespene"]) / unit["brood"])
    for target in ("ground", "air"):
      unit[target] = {key: number.get(f"{target}_{key}", 0.0)
                      for key in ("damage", "attacks", "bonus", "range", "cooldown")}
      unit[target]["against"] = row[f"{target}_bonus_against"]
      unit[target]["cooldown"] *= 16
    unit["worker"] = row["name"] in WORKERS
    unit["armed"] = unit["ground"]["damage"] > 0 or unit["air"]["damage"] > 0
    unit["fighter"] = unit["armed"] and not unit["worker"]
    if self.tier.minerals_only:
      unit["minerals"], unit["vespene"] = unit["minerals"] + unit["vespene"], 0
    if self.tier.townhall_food:
      unit["gives"] = self.tier.townhall_food if row["name"] in HALLS else 0
    if unit["structure"]:
      unit["brood"] = 0
    return unit

  def _upgrade(self, row):
    amounts = {entry.split(":")[0]: float(entry.split(":")[1]) for entry in row["amounts"].split()}
    if row["effect"] == "speed":
      amounts = {name: amount / 4 for name, amount in amounts.items()}
    return {"minerals": int(row["minerals"]), "vespene": int(row["vespene"]), "food": 0.0,
            "loops": -int(-float(row["time"]) // self.tier.tempo), "brood": 0, "larva": False,
            "producer": self.by_id.get(int(row["producer"])), "level": int(row["level"]),
            "requirement": self.by_id.get(int(row["requirement"])), "function": row["function"],
            "effect": row["effect"], "amounts": amounts}

  def product(self, index):
    """The name of a product of the engine, None for none."""
    index = int(index)
    if index == 0:
      return None
    return self.names[index - 1] if index <= len(self.names) else (
      self.upgrades[index - 1 - len(self.names)])

  def makes(self, name):
    """The row of a unit, a structure or an upgrade."""
    return self.unit[name] if name in self.unit else self.upgrade[name]


@dataclasses.dataclass
class Order:
  """A unit's order."""

  verb: int = IDLE
  x: float = 0.0
  y: float = 0.0
  target: int = -1
  product: str | None = None


@dataclasses.dataclass
class Body:
  """A unit or a structure."""

  slot: int
  name: str
  x: float
  y: float
  health: float
  shield: float = 0.0
  energy: float = 0.0
  calm: int = 0
  hurt: bool = False
  selected: bool = False
  cooldown: float = 0.0
  # Structures.
  unfinished: int = 0
  queue: list = dataclasses.field(default_factory=list)  # [product, loops left]
  rally: tuple | None = None
  larvae: int = 0
  larva_loops: int = 0
  injected: int = 0
  boosted: int = 0
  # Units.
  order: Order = dataclasses.field(default_factory=Order)
  later: Order = dataclasses.field(default_factory=Order)
  trip: int = 0
  cargo: int = 0
  cargo_gas: bool = False
  stimmed: int = 0
  blur: float = 0.0  # how far rounding can move it, map units


@dataclasses.dataclass
class Player:
  """One side: its bodies, money, knowledge and record."""

  side: float
  race: str
  bodies: dict  # slot: Body
  minerals: int
  vespene: int
  income: int
  upgrades: set
  debt: float
  scan: list  # x, y, loops
  patches: list  # of its own half
  next_loop: int
  last: list  # loop, function, queued, repeat
  refused: int  # an action result
  targeted: set  # of own slots, the enemy's, resources
  seen: set
  visible: np.ndarray  # [H, W] bool
  explored: np.ndarray
  memory: dict  # slot: [name, x, y, health]
  known_patches: list
  met: bool
  score: dict
  build_order: list  # (type, x, y)
  made: set  # dense type indices
  researched: set
  effects: set
  command: dict | None = None

  def finished(self, slot):
    """The body of a finished structure or of a unit, None for others."""
    body = self.bodies.get(slot)
    return body if body is not None and body.unfinished == 0 else None


def unpack(words, size):
  """[H, W / 32] uint32 to [H, W] bool."""
  bits = (np.asarray(words)[..., None] >> np.arange(32, dtype=np.uint32)) & 1
  return bits.reshape(size, size).astype(bool)


class Game:
  """A game read from the engine's state, of numpy arrays without a batch axis."""

  def __init__(self, table, state):
    self.table, tier = table, table.tier
    self.loop, self.map = int(state.loop), int(state.match_up.map_index) % 3
    self.last_event, self.winner = int(state.last_event), int(state.winner)
    self.close = 0  # comparisons that a rounding error could change
    self.players = [self._player(tier, state, p) for p in range(2)]

  def _body(self, tier, state, p, slot):
    s, plain, table = tier.structures, tier.unarmed, self.table

    def of(values, index=slot, empty=0):
      return values[p, index].item() if values.shape[1] else empty

    body = Body(
      slot=slot, name=table.names[state.kind[p, slot] - 1], x=of(state.x), y=of(state.y),
      health=of(state.health), shield=of(state.shield), energy=of(state.energy),
      calm=of(state.calm), hurt=of(state.hurt), selected=of(state.was_selected))
    if slot >= plain:
      body.cooldown = of(state.cooldown, slot - plain)
    if slot < s:
      body.unfinished = of(state.unfinished)
      body.queue = [[table.product(q), int(t)] for q, t in
                    zip(state.queue[p, slot], state.timers[p, slot], strict=True) if q]
      body.rally = (of(state.rally_x), of(state.rally_y)) if of(state.rally) else None
      body.larvae, body.larva_loops = of(state.larvae), of(state.larva_loops)
      body.injected, body.boosted = of(state.injected), of(state.boosted)
      return body
    unit = slot - s
    body.order, body.later = (Order(
      of(o.verb, unit), of(o.x, unit), of(o.y, unit), of(o.target, unit),
      table.product(of(o.product, unit))) for o in (state.orders, state.next_orders))
    body.trip, body.stimmed = of(state.trip, unit), of(state.stimmed, unit)
    body.cargo = of(state.cargo, unit)
    body.cargo_gas = bool(body.cargo and of(state.cargo_gas, unit))
    return body

  def _player(self, tier, state, p):
    table, memory, size = self.table, state.memory, self.table.rules.map_size
    count = int((state.executed.build_order[p] > 0).sum())
    return Player(
      side=float(state.side[p]), race=("Terran", "Protoss", "Zerg")[state.race[p]],
      bodies={int(slot): self._body(tier, state, p, int(slot))
              for slot in np.flatnonzero(state.kind[p])},
      minerals=int(state.minerals[p]), vespene=int(state.vespene[p]),
      income=int(state.match_up.income[p]),
      upgrades={table.upgrades[u] for u in np.flatnonzero(state.upgrades[p])},
      debt=float(state.repair_debt[p]),
      scan=[float(state.scan_x[p]), float(state.scan_y[p]), int(state.scan_loops[p])],
      patches=state.patches[p].tolist(), next_loop=int(state.next_loop[p]),
      last=[int(v[p]) for v in (state.last_loop, state.last_function, state.last_queued,
                                state.last_repeat)],
      refused=int(state.refused[p]),
      targeted=set(np.flatnonzero(state.was_targeted[p]).tolist()),
      seen=set(np.flatnonzero(memory.seen[p]).tolist()),
      visible=unpack(memory.visible[p], size), explored=unpack(memory.explored[p], size),
      memory={int(slot): [table.names[memory.kind[p, slot] - 1], float(memory.x[p, slot]),
                          float(memory.y[p, slot]), float(memory.health[p, slot])]
              for slot in np.flatnonzero(memory.kind[p])},
      known_patches=memory.patches[p].tolist(), met=bool(memory.met[p]),
      score={name: int(values[p]) for name, values in state.score._asdict().items()},
      build_order=[(int(t), *map(int, xy)) for t, xy in zip(
        state.executed.build_order[p][:count], state.executed.build_order_xy[p][:count],
        strict=True)],
      made=set(np.flatnonzero(state.executed.units[p]).tolist()),
      researched=set(np.flatnonzero(state.executed.upgrades[p]).tolist()),
      effects=set(np.flatnonzero(state.executed.effects[p]).tolist()),
      command=self._command(state.commands, p))

  def _command(self, commands, p):
    name = self.table.rules.functions.names[commands.function[p]]
    if name == "no_op":
      return None
    return {"function": name, "slots": set(np.flatnonzero(commands.selected[p]).tolist()),
            "x": float(commands.x[p]), "y": float(commands.y[p]),
            "kind": int(commands.target_kind[p]),
            # Without a target the number means nothing.
            "target": int(commands.target[p]) if commands.target_kind[p] else None,
            "queued": bool(commands.queued[p]), "repeat": int(commands.repeat[p])}

  # Comparisons, which count those that rounding could change.

  def at_most(self, value, limit, margin=1e-4):
    """value <= limit; counts close calls, except exact equality."""
    if 0 < abs(value - limit) <= margin * max(1.0, abs(limit)):
      self.close += 1
    return value <= limit

  def less(self, value, limit):
    """value < limit; counts close calls, except exact equality."""
    if 0 < abs(value - limit) <= 1e-4 * max(1.0, abs(limit)):
      self.close += 1
    return value < limit


_PLACED = (MOVE, ATTACK, BUILD, PATROL)
_AIMED = (GATHER, ATTACK_UNIT, CONSTRUCT, REPAIR)
_MAKES = (BUILD, CONSTRUCT)


def _order_of(order):
  """The parts of an order that have a meaning for its verb."""
  return (order.verb, order.target if order.verb in _AIMED else None,
          order.product if order.verb in _MAKES else None)


def differences(found, expected):
  """Differences between the twin's game and one read from the engine: [text]."""
  wrong = []

  def same(what, one, other):
    if one != other:
      wrong.append(f"{what}: twin {one}, engine {other}")

  def near(what, one, other, blur=0.0):
    if not abs(one - other) <= 1e-3 + blur:
      wrong.append(f"{what}: twin {one}, engine {other}")

  same("loop", found.loop, expected.loop)
  same("winner", found.winner, expected.winner)
  same("last_event", found.last_event, expected.last_event)
  for p, (mine, theirs) in enumerate(zip(found.players, expected.players, strict=True)):
    for name in ("side", "race", "minerals", "vespene", "income", "upgrades", "patches",
                 "next_loop", "last", "refused", "targeted", "seen", "known_patches", "met",
                 "score", "build_order", "made", "researched", "effects", "command"):
      same(f"{p} {name}", getattr(mine, name), getattr(theirs, name))
    near(f"{p} debt", mine.debt, theirs.debt)
    same(f"{p} scan", mine.scan[2], theirs.scan[2])
    if mine.scan[2]:
      near(f"{p} scan x", mine.scan[0], theirs.scan[0])
      near(f"{p} scan y", mine.scan[1], theirs.scan[1])
    for name in ("visible", "explored"):
      differs = getattr(mine, name) != getattr(theirs, name)
      same(f"{p} {name}", np.argwhere(differs).tolist(), [])
    same(f"{p} memory", {k: v[0] for k, v in mine.memory.items()},
         {k: v[0] for k, v in theirs.memory.items()})
    for slot in mine.memory.keys() & theirs.memory.keys():
      for i, part in enumerate(("x", "y", "health"), 1):
        near(f"{p} memory {slot} {part}", mine.memory[slot][i], theirs.memory[slot][i])
    same(f"{p} bodies", {k: b.name for k, b in mine.bodies.items()},
         {k: b.name for k, b in theirs.bodies.items()})
    for slot in mine.bodies.keys() & theirs.bodies.keys():
      one, other = mine.bodies[slot], theirs.bodies[slot]
      where = f"{p} {one.name} {slot}"
      for name in ("hurt", "selected", "calm", "unfinished", "queue", "larvae", "larva_loops",
                   "injected", "boosted", "trip", "cargo", "cargo_gas", "stimmed"):
        same(f"{where} {name}", getattr(one, name), getattr(other, name))
      for name in ("x", "y"):
        near(f"{where} {name}", getattr(one, name), getattr(other, name), one.blur)
      for name in ("health", "shield", "energy", "cooldown"):
        near(f"{where} {name}", getattr(one, name), getattr(other, name))
      same(f"{where} rally", one.rally is None, other.rally is None)
      for i in range(2 if one.rally and other.rally else 0):
        near(f"{where} rally", one.rally[i], other.rally[i])
      for name in ("order", "later"):
        a, b = getattr(one, name), getattr(other, name)
        same(f"{where} {name}", _order_of(a), _order_of(b))
        if a.verb in _PLACED:
          near(f"{where} {name} x", a.x, b.x)
          near(f"{where} {name} y", a.y, b.y)
  return wrong


def dense_type(name):
  """The vocabulary's index of a unit type."""
  return vocabulary.UNIT_TYPES.index(name)


def grid(table, value):
  """A coordinate on the grid of 256 cells."""
  cell = np.floor(types.POSITION_GRID / table.tier.map_size * (value + table.tier.map_size / 2))
  return int(np.clip(cell, 0, types.POSITION_GRID - 1))
