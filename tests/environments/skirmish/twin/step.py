"""One step of Skirmish as its rules say, for one game, unit by unit: what the engine is held to."""

import math

import numpy as np
from s2clientprotocol import error_pb2

from starleague.agent import vocabulary
from tests.environments.skirmish.twin.economy import Economy
from tests.environments.skirmish.twin.fight import fight_and_see
from tests.environments.skirmish.twin.known import (
  ENEMY,
  ENERGY,
  OWN,
  QUEUE,
  RESOURCE,
  STEP,
  STIM_COST,
  VERBS,
)
from tests.environments.skirmish.twin.state import (
  ATTACK,
  ATTACK_UNIT,
  BUILD,
  CONSTRUCT,
  GAS,
  GATHER,
  HALLS,
  IDLE,
  PATROL,
  REPAIR,
  RETURN,
  SUPPLY,
  Body,
  Order,
  dense_type,
  grid,
)

RESULT = dict(error_pb2.ActionResult.items())


class Refused(Exception):
  """A command that does nothing: the name of StarCraft II's result."""


class Twin(Economy):
  """The rules; `step` and `act` change a Game in place."""

  # From an action to a command.

  def act(self, game, p, action, due):
    """Notes an action, if its player is due: rows of its observation become slots."""
    player = game.players[p]
    if not due:
      return
    n = self.n
    shown = [("own", i) for i in sorted(player.bodies)]
    shown += [("enemy", i) for i in sorted(player.seen | player.memory.keys())]
    shown += [("patch", i) for i, left in enumerate(player.known_patches) if left > 0]
    dense = int(action.function)
    names = {int(i): name for name, i in zip(
      self.table.rules.functions.names, self.table.rules.functions.index, strict=True)}
    function = names.get(dense, "no_op")
    arguments = dict(zip(("function", "delay", "queued", "repeat", "units", "target", "location"),
                         vocabulary.ARGUMENT_TABLE[dense], strict=True))
    selected = {shown[row][1] for row in action.units.tolist()
                if row < len(shown) and shown[row][0] == "own"}
    target = (shown[int(action.target_unit)] if arguments["target"]
              and int(action.target_unit) < len(shown) else None)
    size = self.table.rules.location_size
    at = [(int(v) + 0.5) * self.tier.map_size / size - self.tier.map_size / 2
          for v in (action.location % size, action.location // size)]
    kinds = {"own": OWN, "enemy": ENEMY, "patch": RESOURCE}
    player.command = None
    player.refused = 0
    if dense and function == "no_op":
      player.refused = RESULT["NotSupported"]
    elif arguments["target"] and target is None:
      player.refused = RESULT["CantTargetThatUnit"]
    if function != "no_op" and not (arguments["target"] and target is None):
      player.command = {
        "function": function, "slots": selected, "x": at[0], "y": at[1],
        "kind": kinds[target[0]] if target else 0,
        "target": target[1] if target else None, "queued": bool(action.queued),
        "repeat": min(int(action.repeat) + 1, 3)}
    player.next_loop = math.ceil((game.loop + max(int(action.delay), 1)) / STEP) * STEP
    player.last = [game.loop, dense, int(action.queued) * int(arguments["queued"]),
                   int(action.repeat) * int(arguments["repeat"])]
    if arguments["units"]:
      for body in player.bodies.values():
        body.selected = body.slot in selected
      player.targeted = set()
      if target:
        player.targeted = {target[1] + {"own": 0, "enemy": n, "patch": 2 * n}[target[0]]}

  # Orders.

  def placeable(self, game, p, x, y, product, ordered):
    """Whether a structure fits: as its player knows when it is ordered, else as it is."""
    player, row, half = game.players[p], self.table.unit[product], self.tier.map_size / 2
    gas, radius = product in GAS, row["radius"]
    if not gas and not game.at_most(max(abs(x), abs(y)) + radius, half):
      return False
    theirs = [(b.name, b.x, b.y) for b in self.structures(game.players[1 - p])]
    left = [self.contents(game, p, r) for r in range(len(self.places))]
    if ordered:
      theirs, left = self.known_structures(game, p), player.known_patches
    for name, bx, by in [(b.name, b.x, b.y) for b in self.structures(player)] + theirs:
      if not game.at_most((radius + self.table.unit[name]["radius"]) ** 2,
                          (bx - x) ** 2 + (by - y) ** 2):
        return False
    if gas:
      return any(self.geyser[r] and left[r] > 0
                 and (x - self.place(player, r)[0]) ** 2
                 + (y - self.place(player, r)[1]) ** 2 < 0.01 for r in range(len(self.places)))
    for r in range(len(self.places)):
      px, py = self.place(player, r)
      if left[r] > 0 and not game.at_most(
          (radius + 1.0) ** 2, (px - x) ** 2 + (py - y) ** 2):
        return False
    if self.table.rules.terrain is not None:
      for dx in (-0.8, 0.0, 0.8):
        for dy in (-0.8, 0.0, 0.8):
          if not self.on(game, player, "buildable", x + radius * dx, y + radius * dy):
            return False
    if row["race"] == "Zerg" and product not in HALLS:
      return any(b.name == "Hatchery" and not b.unfinished
                 and game.less((b.x - x) ** 2 + (b.y - y) ** 2, 100.0)
                 for b in self.structures(player))
    return True

  def aim(self, game, p, command):
    """x, y and whether the target is there."""
    player, enemy = game.players[p], game.players[1 - p]
    target, kind = command["target"], command["kind"]
    if kind == OWN:
      body = player.bodies.get(target)
      return (body.x, body.y, True) if body else (0.0, 0.0, False)
    if kind == ENEMY:
      if target in player.seen and target in enemy.bodies:
        return enemy.bodies[target].x, enemy.bodies[target].y, True
      if target in player.seen:  # it was there a moment ago
        return 0.0, 0.0, False
      if target in player.memory:
        return *player.memory[target][1:3], True
      return 0.0, 0.0, False
    if kind == RESOURCE:
      return *self.place(player, target), player.known_patches[target] > 0
    return command["x"], command["y"], True

  def give_orders(self, game, p, can):
    """Carries out a command as far as units and rally points go; what else it is.

    Args:
      game: changed in place.
      p: whose command.
      can: whether its function is available.
    """
    player = game.players[p]
    if player.command is None:
      return None
    try:
      given = self._give(game, p, can)
      player.refused = 0
      return given
    except Refused as reason:
      player.refused = RESULT[str(reason)]
      return None

  def _give(self, game, p, can):
    player, command = game.players[p], game.players[p].command
    function = command["function"]
    verb = VERBS.get(function)
    product = self.product(player, function)
    builds = product in self._built()
    verb = BUILD if builds else verb
    x, y, there = self.aim(game, p, command)
    target, kind = command["target"], command["kind"]
    own = player.finished(target) if kind == OWN else None
    smart = function == "Smart_unit"
    bodies = [player.bodies[i] for i in sorted(command["slots"] & player.bodies.keys())]
    if function != "Cancel_quick":
      bodies = [b for b in bodies if not b.unfinished and b.order.verb != CONSTRUCT
                and self.capable(function, b.name)]
    if not bodies:
      raise Refused("YouCantIssueCommandsToThatUnit")
    if not can:
      raise Refused(self.why_not(player, function))
    if not there:
      raise Refused("CantTargetExhaustedResources" if kind == RESOURCE else "CantTargetThatUnit")
    if any(self.geyser):
      apart = [(self.place(player, r)[0] - x) ** 2 + (self.place(player, r)[1] - y) ** 2
               if self.geyser[r] else math.inf for r in range(len(self.places))]
      nearest = int(np.argmin(apart))
      if own is not None and own.name in GAS and apart[nearest] <= 9 and (
          smart or verb == GATHER):
        target, kind, own = nearest, RESOURCE, None
      if builds and product in GAS:
        if not game.at_most(apart[nearest], 9.0):
          raise Refused("CantBuildLocationInvalid")
        x, y = self.place(player, nearest)
    if verb == ATTACK_UNIT and kind != ENEMY:
      raise Refused("MustTargetEnemyUnits")
    if verb == GATHER and kind != RESOURCE:
      raise Refused("MustTargetResources")
    if builds and not self.placeable(game, p, x, y, product, ordered=True):
      raise Refused("CantBuildLocationInvalid")
    if verb == REPAIR and (kind != OWN or target not in player.bodies
                           or not self.repairable(player.bodies[target])):
      raise Refused("RequiresRepairTarget")
    if function == "Effect_InjectLarva_unit" and not (own and self.injectable(own)):
      raise Refused("AlreadySpawningLarva" if own and own.injected else "CantTargetThatUnit")
    if function == "Effect_ChronoBoostEnergyCost_unit" and (
        own is None or not self.row(own)["structure"]):
      raise Refused("MustTargetStructures")
    given = {"function": function, "product": product, "x": x, "y": y, "target": target,
             "repeat": command["repeat"], "bodies": bodies}
    if function in self.functions and not builds:
      self._check_queues(bodies, product)
      return given
    if verb is None and not function.startswith("Rally_"):
      given["bodies"] = [b for b in bodies if self.can_use(player, function, b)]
      if not given["bodies"]:
        raise Refused(self.why_unable(player, function, bodies))
      return given
    if smart and kind == ENEMY:
      verb = ATTACK_UNIT
    if verb == ATTACK_UNIT and target not in player.seen:
      verb = ATTACK
    obeyed = False
    for body in bodies:
      if body.slot < self.s:
        body.rally, obeyed = (x, y), True
        continue
      if verb == REPAIR and body.slot == target:
        continue
      does = GATHER if smart and kind == RESOURCE and self.row(body)["worker"] else verb
      if smart and own is not None and own.name in HALLS and body.cargo:
        does = RETURN
      if does == RETURN and not body.cargo:
        continue
      obeyed = True
      order = Order(does, x, y, target if target is not None else 0, product)
      if command["queued"] and body.order.verb != IDLE:
        body.later = order
      else:
        body.order, body.trip = order, 0
        body.later = Order(PATROL, body.x, body.y) if does == PATROL else Order()
      if builds:
        break
    if not obeyed:
      raise Refused("NoCargoToUnload" if verb == RETURN else "RequiresRepairTarget")
    return None

  def _check_queues(self, bodies, product):
    """Whether any of them has a place for it."""
    larva = self.table.makes(product)["larva"]
    if any(not b.queue if self.turns(product) else len(b.queue) < QUEUE and (
        b.larvae or not larva) for b in bodies):
      return
    raise Refused("QueueIsFull" if not larva or any(b.larvae for b in bodies) else
                  "NotEnoughCharges")

  def next_order(self, body, mines):
    """What was queued, else to mine or to rest."""
    now = body.order
    body.trip = 0
    if body.later.verb == IDLE:
      body.order = Order(GATHER if mines else IDLE, target=-1)
      return
    body.order = body.later
    body.later = Order(PATROL, now.x, now.y) if (
      now.verb == PATROL and body.order.verb == PATROL) else Order()

  # What happens at once.

  def leave(self, game, p, body):
    """Takes a body off the map."""
    del game.players[p].bodies[body.slot]
    game.players[p].targeted.discard(body.slot)
    game.players[1 - p].targeted.discard(self.n + body.slot)

  def use(self, game, p, given):
    """Abilities."""
    player, function = game.players[p], given["function"]
    users = given["bodies"]
    flag = vocabulary.FUNCTIONS.index(function)
    place = np.flatnonzero(vocabulary.EFFECT_FUNCTIONS == flag)
    if users and len(place):
      player.effects.add(int(place[0]))
    if function == "Effect_Stim_quick":
      for body in users:
        body.stimmed, body.health = 176, body.health - STIM_COST[body.name]
    elif function.startswith("Morph_"):
      for body in users:
        body.name = "SiegeTankSieged" if "SiegeMode" in function else "SiegeTank"
        body.cooldown, body.order, body.later = 43.0, Order(), Order()
    elif function in ENERGY and users:
      users[0].energy -= ENERGY[function]
      target = player.bodies.get(given["target"])
      if function == "Effect_Scan_pt":
        player.scan = [given["x"], given["y"], 196]
      elif function == "Effect_InjectLarva_unit":
        target.injected = 464 // self.tier.tempo
      else:
        target.boosted = 320 // self.tier.tempo
    elif function == "Cancel_quick":
      for body in users:
        row = self.row(body)
        self.pay(player, -int(0.75 * row["minerals"]), -int(0.75 * row["vespene"]))
        self.leave(game, p, body)
      for body in users:  # what a Drone became is one again
        free = [i for i in range(self.s, self.n) if i not in player.bodies]
        drone = self.table.unit["Drone"] if self.row(body)["race"] == "Zerg" else None
        if drone and self.room(player) > 0 and (
            self.food(player)[0] + drone["food"] <= self.tier.food_cap):
          player.bodies[free[0]] = Body(free[0], "Drone", body.x, body.y, drone["health"],
                                        order=Order(GATHER, target=-1))
    elif function == "Cancel_Last_quick":
      for body in users:
        row = self.table.makes(body.queue.pop()[0])
        self.pay(player, -row["minerals"], -row["vespene"])

  def record(self, game, p, begun, births):
    player = game.players[p]
    if begun or births:
      game.last_event = game.loop if self.tier.quiet_loops else game.last_event
    for name, x, y in ([begun] if begun else []) + births:
      row = self.table.unit[name]
      player.made.add(dense_type(name))
      player.score["structures" if row["structure"] else "units"] += row["value"]
      if not row["worker"] and name not in SUPPLY and len(player.build_order) < 20:
        player.build_order.append((dense_type(name), grid(self.table, x), grid(self.table, y)))

  def step(self, game):
    """8 game loops."""
    can = [game.players[p].command is not None and self.available(
      game, p, game.players[p].command["function"]) for p in range(2)]
    given = [self.give_orders(game, p, can[p]) for p in range(2)]
    for p, each in enumerate(given):
      if each is not None and each["function"] not in self.functions:
        self.use(game, p, each)
    for p, each in enumerate(given):
      if each is not None and each["function"] in self.functions:
        self.train(game.players[p], each)
    births = [self.finish(player) for player in game.players]
    for player in game.players:
      self.grow_larvae(player)
    self.mine(game)
    begun = self.construct(game)
    for p in range(2):
      self.record(game, p, begun[p], births[p])
    fight_and_see(self, game)
