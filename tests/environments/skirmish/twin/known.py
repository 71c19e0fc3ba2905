"""What a game contains and allows by the rules: the twin's queries."""

import math

import numpy as np

from starleague.agent import vocabulary
from tests.environments.skirmish.twin.state import (
  ATTACK,
  ATTACK_UNIT,
  CONSTRUCT,
  COUNTS_AS,
  GAS,
  GATHER,
  HALLS,
  HOLD,
  IDLE,
  MOVE,
  PATROL,
  REPAIR,
  RETURN,
  dense_type,
)

VERBS = {
  "Smart_pt": MOVE, "Smart_unit": MOVE, "Attack_pt": ATTACK, "Attack_unit": ATTACK_UNIT,
  "Move_pt": MOVE, "Move_unit": MOVE, "Stop_quick": IDLE, "HoldPosition_quick": HOLD,
  "Harvest_Gather_unit": GATHER, "Harvest_Return_quick": RETURN, "Patrol_pt": PATROL,
  "Effect_Repair_unit": REPAIR}
ABILITIES = {
  "Effect_Stim_quick": {"Marine", "Marauder"}, "Morph_SiegeMode_quick": {"SiegeTank"},
  "Morph_Unsiege_quick": {"SiegeTankSieged"}, "Effect_Scan_pt": {"OrbitalCommand"},
  "Effect_InjectLarva_unit": {"Queen"}, "Effect_ChronoBoostEnergyCost_unit": {"Nexus"}}
ENERGY = {"Effect_Scan_pt": 50.0, "Effect_InjectLarva_unit": 25.0,
          "Effect_ChronoBoostEnergyCost_unit": 50.0}
STIM_COST = {"Marine": 10.0, "Marauder": 20.0}
STEP, QUEUE = 8, 5
OWN, ENEMY, RESOURCE = 1, 2, 3


class Known:
  """Queries of a Game."""

  def __init__(self, table):
    self.table, self.tier = table, table.tier
    tier = table.tier
    self.n, self.s = tier.slots, tier.structures
    places = np.array(tier.patches)
    self.places = [*map(tuple, places), *map(tuple, -places)]
    self.geyser = list(tier.geysers) * 2
    self.functions = {}  # function: its products, levels in order
    for name in table.names:
      if name != "SiegeTankSieged":
        self.functions.setdefault(table.unit[name]["function"], []).append(name)
    for name in table.upgrades:
      self.functions.setdefault(table.upgrade[name]["function"], []).append(name)

  # Places and possessions.

  def place(self, player, resource):
    x, y = self.places[resource]
    return player.side * x, player.side * y

  def contents(self, game, p, resource):
    half = len(self.places) // 2
    owner = p if resource < half else 1 - p
    return game.players[owner].patches[resource % half]

  def row(self, body):
    return self.table.unit[body.name]

  def row_of_making(self, body):
    """The row of its production; a sieged tank was produced as a tank."""
    return self.table.unit["SiegeTank" if body.name == "SiegeTankSieged" else body.name]

  def produces(self, body):
    """Whether a structure makes units or upgrades."""
    return body.name in self.makers() or body.name in {
      u["producer"] for u in self.table.upgrade.values()}

  def structures(self, player):
    return [player.bodies[i] for i in sorted(player.bodies) if i < self.s]

  def known_structures(self, game, p):
    """The opponent's structures as a player knows them: [(name, x, y)]."""
    player, enemy = game.players[p], game.players[1 - p]
    seen = [enemy.bodies[i] for i in sorted(player.seen) if i < self.s and i in enemy.bodies]
    return [(b.name, b.x, b.y) for b in seen] + [
      tuple(remembered[:3]) for slot, remembered in sorted(player.memory.items())
      if slot not in player.seen]

  def free_geyser(self, game, p, radius):
    """Whether any geyser has room for a gas structure, as far as the player knows."""
    player = game.players[p]
    stand = self.known_structures(game, p) + [
      (b.name, b.x, b.y) for b in self.structures(player)]
    return any(
      left > 0 and self.geyser[r] and all(game.at_most(
        (radius + self.table.unit[name]["radius"]) ** 2,
        (x - self.place(player, r)[0]) ** 2 + (y - self.place(player, r)[1]) ** 2)
        for name, x, y in stand) for r, left in enumerate(player.known_patches))

  def units(self, player):
    return [player.bodies[i] for i in sorted(player.bodies) if i >= self.s]

  def cell(self, player, x, y):
    cells = self.table.rules.terrain.cells
    return tuple(min(max(math.floor(player.side * v + cells / 2), 0), cells - 1) for v in (y, x))

  def on(self, game, player, layer, x, y):
    """A layer of the terrain at a place."""
    terrain = self.table.rules.terrain
    for value in (x, y):
      if 0 < abs(value - round(value)) < 1e-4:
        game.close += 1
    return bool(getattr(terrain, layer)[(game.map, *self.cell(player, x, y))])

  def stands(self, player, name):
    return name is None or any(
      name in (b.name, COUNTS_AS.get(b.name)) for b in self.structures(player) if not b.unfinished)

  def food(self, player):
    """Food used, with that of products in queues, and the maximum."""
    taken = sum(self.row(b)["food"] for b in player.bodies.values())
    for body in self.structures(player):
      for product, _ in body.queue:
        taken += self.table.makes(product)["food"] * max(self.table.makes(product)["brood"], 1)
    supplied = sum(self.row(b)["gives"] for b in player.bodies.values() if not b.unfinished)
    return taken, min(supplied, self.tier.food_cap)

  def room(self, player):
    coming = sum(self.table.makes(product)["brood"] for b in self.structures(player)
                 for product, _ in b.queue)
    return self.tier.units - len(self.units(player)) - coming

  def added(self, player, effect, name):
    """The sum that a player's upgrades add to an effect of a type."""
    return sum(self.table.upgrade[u]["amounts"].get(name, 0.0) for u in sorted(player.upgrades)
               if self.table.upgrade[u]["effect"] == effect)

  def most_health(self, player, body):
    return self.row(body)["health"] + self.added(player, "health", body.name)

  def tapped(self, player, resource):
    """Whether a resource can be mined; a geyser needs an own finished gas structure."""
    if not self.geyser[resource]:
      return True
    x, y = self.place(player, resource)
    return any(b.name in GAS and not b.unfinished and (b.x - x) ** 2 + (b.y - y) ** 2 < 1
               for b in self.structures(player))

  def served(self, player, resource):
    x, y = self.place(player, resource)
    return any(b.name in HALLS and not b.unfinished and (b.x - x) ** 2 + (b.y - y) ** 2 < 49
               for b in self.structures(player))

  # Functions.

  def capable(self, function, name):
    """Whether a type can execute a function."""
    row = self.table.unit[name]
    dense = vocabulary.FUNCTIONS.index(function)
    if not vocabulary.CAPABLE[dense, dense_type(name)]:
      return False
    if function in self.functions:
      product = self.functions[function][0]
      maker = self.table.makes(product)["producer"]
      return name == maker or (COUNTS_AS.get(name) == maker and product != name)
    mobile = row["speed"] > 0 and not row["structure"]
    if function in ("Harvest_Gather_unit", "Harvest_Return_quick"):
      return row["worker"]
    if function == "Effect_Repair_unit":
      return name == "SCV"
    if function in ("Stop_quick", "Attack_pt", "Attack_unit"):
      return mobile or name == "SiegeTankSieged"
    if function in ("Smart_pt", "Smart_unit"):
      return mobile or name in self.makers()
    if function in VERBS:
      return mobile
    if function.startswith("Rally_"):
      hall = any(u["worker"] and u["producer"] in (name, COUNTS_AS.get(name))
                 for u in self.table.unit.values())
      return name in self.makers() and hall == ("Workers" in function)
    if function == "Cancel_quick":
      return row["structure"]
    if function == "Cancel_Last_quick":
      researches = {u["producer"] for u in self.table.upgrade.values()}
      return name in self.makers() or name in researches
    return name in ABILITIES[function]

  def makers(self):
    return self.table.makers | {n for n, o in COUNTS_AS.items() if o in self.table.makers}

  def product(self, player, function):
    """What a function makes now; of upgrades the next level, unless one is in research."""
    products = self.functions.get(function, [])
    if not products or products[0] in self.table.unit:
      return products[0] if products else None
    busy = any(product in products for b in self.structures(player) for product, _ in b.queue)
    left = [product for product in products if product not in player.upgrades]
    return left[0] if left and not busy else None

  def turns(self, product):
    """Whether a structure morphs into it: an Orbital Command."""
    return (product in self.table.unit and self.table.unit[product]["structure"]
            and product not in self._built())

  def _built(self):
    return {n for n, u in self.table.unit.items()
            if u["structure"] and self.table.unit[u["producer"]]["worker"]}

  def stimmable(self, player, body):
    return (any(self.table.upgrade[u]["effect"] == "stim" for u in player.upgrades)
            and body.name in STIM_COST and body.health > STIM_COST[body.name]
            and not body.stimmed)

  def repairable(self, body):
    row = self.row(body)
    return ("Mechanical" in row["tags"] and not body.unfinished and body.health > 0
            and body.health < row["health"] - 0.5)

  def injectable(self, body):
    return body.name in self.table.hatcheries and not body.unfinished and not body.injected

  def can_use(self, player, function, body):
    """Whether a body can use an ability now."""
    if function == "Cancel_quick":
      return body.unfinished > 0
    if body.unfinished or not self.capable(function, body.name):
      return False
    if function == "Cancel_Last_quick":
      return bool(body.queue)
    if function == "Effect_Stim_quick":
      return self.stimmable(player, body)
    return body.energy >= ENERGY.get(function, 0.0)

  def available(self, game, p, function):
    """Whether a function can have an effect now."""
    player, table = game.players[p], self.table
    ready = [b for b in player.bodies.values()
             if not b.unfinished and b.order.verb != CONSTRUCT]
    executors = [b for b in ready if self.capable(function, b.name)]
    if function in self.functions:
      product = self.product(player, function)
      if product is None:
        return False
      row = table.makes(product)
      if (player.minerals < row["minerals"] or player.vespene < row["vespene"]
          or not self.stands(player, row["requirement"])):
        return False
      if product in self._built():
        taken = {b.slot for b in self.structures(player)}
        slots = (range(self.tier.unarmed, self.s) if row["armed"] else range(self.tier.unarmed))
        if product in GAS and not self.free_geyser(game, p, row["radius"]):
          return False
        return bool(executors) and any(i not in taken for i in slots)
      taken, most = self.food(player)
      if row["food"] and taken + row["food"] * max(row["brood"], 1) > most:
        return False
      if row["brood"] and row["brood"] > self.room(player):
        return False
      return any(
        not b.queue if self.turns(product) else len(b.queue) < QUEUE and (
          b.larvae > 0 or not row["larva"]) for b in executors)
    if function in ABILITIES or function.startswith("Cancel"):
      if not any(self.can_use(player, function, b) for b in player.bodies.values()):
        return False
      return function != "Effect_InjectLarva_unit" or any(
        self.injectable(b) for b in self.structures(player))
    if not executors:
      return False
    if function == "Attack_unit":
      return bool(player.seen or player.memory)
    if function == "Harvest_Gather_unit":
      return any(player.known_patches)
    if function == "Harvest_Return_quick":
      return any(b.cargo for b in executors) and any(
        b.name in HALLS for b in self.structures(player) if not b.unfinished)
    if function == "Effect_Repair_unit":
      return any(self.repairable(b) and b is not hand
                 for b in player.bodies.values() for hand in executors)
    return True

  def why_not(self, player, function):
    """The name of the action result if a function is not available."""
    if function in self.functions:
      return self._why_not_made(player, self.product(player, function))
    if function == "Effect_InjectLarva_unit" and not any(
        self.injectable(b) for b in self.structures(player)):
      return "AlreadySpawningLarva"
    if function in ABILITIES or function.startswith(("Cancel", "Rally")):
      return self.why_unable(player, function, list(player.bodies.values()))
    if function == "Harvest_Return_quick":
      hall = any(b.name in HALLS and not b.unfinished for b in self.structures(player))
      return "NoCargoToUnload" if hall else "CantFindDropOff"
    if function == "Effect_Repair_unit":
      return "RequiresRepairTarget"
    return "CantFindEnoughTargets"  # no enemy to attack, no resource to mine

  def _why_not_made(self, player, product):
    if product is None:
      return "CantQueueThatOrder"
    row, builds = self.table.makes(product), product in self._built()
    if not self.stands(player, row["requirement"]):
      return "TechRequirementsNotMet"
    if player.minerals < row["minerals"]:
      return "NotEnoughMinerals"
    if player.vespene < row["vespene"]:
      return "NotEnoughVespene"
    if builds:
      slots = range(self.tier.unarmed, self.s) if row["armed"] else range(self.tier.unarmed)
      full = all(i in player.bodies for i in slots)
      return "CouldntAllocateUnit" if full else "CantFindPlacementLocation"
    taken, most = self.food(player)
    if row["food"] and taken + row["food"] * max(row["brood"], 1) > most:
      return "NotEnoughFood"
    if row["brood"] > self.room(player):
      return "CouldntAllocateUnit"
    if row["larva"] and not any(b.larvae for b in self.structures(player)):
      return "NotEnoughCharges"
    return "QueueIsFull"

  def why_unable(self, player, function, bodies):
    """The name of the action result if none of the bodies can use an ability."""
    if function in ENERGY:
      return "NotEnoughEnergy"
    if function.startswith("Cancel"):
      return "CantFindCancelOrder"
    if function != "Effect_Stim_quick":
      return "YouCantIssueCommandsToThatUnit"
    if not any(self.table.upgrade[u]["effect"] == "stim" for u in player.upgrades):
      return "TechRequirementsNotMet"
    rested = any(b.name in STIM_COST and not b.stimmed for b in bodies)
    return "NotEnoughLife" if rested else "Cooldown"
