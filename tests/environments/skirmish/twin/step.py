"""One step of Skirmish for one game, unit by unit, as the rules say; the engine must agree."""

import dataclasses
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
  """A command without effect: the name of StarCraft II's action result."""


@dataclasses.dataclass
class Intent:
  """A command with its target and executors looked up."""

  function: str
  verb: int | None
  product: str | None
  builds: bool
  smart: bool
  x: float
  y: float
  there: bool  # the target exists as far as is known
  target: int | None
  kind: int
  bodies: list  # those that can execute it
  own: Body | None  # the own finished body targeted


class Twin(Economy):
  """The rules; `step` and `act` change a Game in place."""

  # From actions to commands.

  def act(self, game, p, action, due):
    """Notes the action of a player that is due: rows of its observation become slots."""
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
    """Whether a structure fits: as far as known when ordered, in fact when a builder arrives."""
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
    """x, y, and whether the target exists as far as is known."""
    player, enemy = game.players[p], game.players[1 - p]
    target, kind = command["target"], command["kind"]
    if kind == OWN:
      body = player.bodies.get(target)
      return (body.x, body.y, True) if body else (0.0, 0.0, False)
    if kind == ENEMY:
      if target in player.seen and target in enemy.bodies:
        return enemy.bodies[target].x, enemy.bodies[target].y, True
      if target in player.seen:  # it has just died
        return 0.0, 0.0, False
      if target in player.memory:
        return *player.memory[target][1:3], True
      return 0.0, 0.0, False
    if kind == RESOURCE:
      return *self.place(player, target), player.known_patches[target] > 0
    return command["x"], command["y"], True

  def give_orders(self, game, p, can):
    """Executes a command as far as units and rally points go; returns the rest of it.

    Args:
      game: changed in place.
      p: whose command.
      can: whether its function is available.
    """
    player = game.players[p]
    if player.command is None:
      return None
    try:
      issued = self._give(game, p, can)
      player.refused = 0
      return issued
    except Refused as reason:
      player.refused = RESULT[str(reason)]
      return None

  def _give(self, game, p, can):
    player, command = game.players[p], game.players[p].command
    intent = self._intent(game, p)
    if not intent.bodies:
      raise Refused("YouCantIssueCommandsToThatUnit")
    if not can:
      raise Refused(self.why_not(player, intent.function))
    if not intent.there:
      raise Refused("CantTargetExhaustedResources" if intent.kind == RESOURCE else
                    "CantTargetThatUnit")
    if any(self.geyser):
      self._redirect_to_geyser(game, player, intent)
    self._check_target(game, p, intent)
    issued = {"function": intent.function, "product": intent.product, "x": intent.x,
              "y": intent.y, "target": intent.target, "repeat": command["repeat"],
              "bodies": intent.bodies}
    if intent.function in self.functions and not intent.builds:
      self._check_queues(intent.bodies, intent.product)
      return issued
    if intent.verb is None and not intent.function.startswith("Rally_"):
      issued["bodies"] = [b for b in intent.bodies if self.can_use(player, intent.function, b)]
      if not issued["bodies"]:
        raise Refused(self.why_unable(player, intent.function, intent.bodies))
      return issued
    if not self._order_bodies(game, p, command, intent):
      raise Refused("NoCargoToUnload" if intent.verb == RETURN else "RequiresRepairTarget")
    return None

  def _intent(self, game, p):
    """A command with its target and executors looked up."""
    player, command = game.players[p], game.players[p].command
    function = command["function"]
    product = self.product(player, function)
    builds = product in self._built()
    x, y, there = self.aim(game, p, command)
    bodies = [player.bodies[i] for i in sorted(command["slots"] & player.bodies.keys())]
    if function != "Cancel_quick":
      bodies = [b for b in bodies if not b.unfinished and b.order.verb != CONSTRUCT
                and self.capable(function, b.name)]
    return Intent(
      function=function, verb=BUILD if builds else VERBS.get(function), product=product,
      builds=builds, smart=function == "Smart_unit", x=x, y=y, there=there,
      target=command["target"], kind=command["kind"], bodies=bodies,
      own=player.finished(command["target"]) if command["kind"] == OWN else None)

  def _redirect_to_geyser(self, game, player, intent):
    """Gas structures aim at their geyser: to mine it, or to be built on it."""
    places = [self.place(player, r) for r in range(len(self.places))]
    apart = [(px - intent.x) ** 2 + (py - intent.y) ** 2 if self.geyser[r] else math.inf
             for r, (px, py) in enumerate(places)]
    nearest = int(np.argmin(apart))
    if intent.own is not None and intent.own.name in GAS and apart[nearest] <= 9 and (
        intent.smart or intent.verb == GATHER):
      intent.target, intent.kind, intent.own = nearest, RESOURCE, None
    if intent.builds and intent.product in GAS:
      if not game.at_most(apart[nearest], 9.0):
        raise Refused("CantBuildLocationInvalid")
      intent.x, intent.y = places[nearest]

  def _check_target(self, game, p, intent):
    """Raises Refused if the target of a command does not suit its function."""
    player, own, verb = game.players[p], intent.own, intent.verb
    if verb == ATTACK_UNIT and intent.kind != ENEMY:
      raise Refused("MustTargetEnemyUnits")
    if verb == GATHER and intent.kind != RESOURCE:
      raise Refused("MustTargetResources")
    if intent.builds and not self.placeable(
        game, p, intent.x, intent.y, intent.product, ordered=True):
      raise Refused("CantBuildLocationInvalid")
    if verb == REPAIR and (intent.kind != OWN or intent.target not in player.bodies
                           or not self.repairable(player.bodies[intent.target])):
      raise Refused("RequiresRepairTarget")
    if intent.function == "Effect_InjectLarva_unit" and not (own and self.injectable(own)):
      raise Refused("AlreadySpawningLarva" if own and own.injected else "CantTargetThatUnit")
    if intent.function == "Effect_ChronoBoostEnergyCost_unit" and (
        own is None or not self.row(own)["structure"]):
      raise Refused("MustTargetStructures")

  def _order_bodies(self, game, p, command, intent):
    """Gives orders and rally points; returns whether any body takes one."""
    player, verb, target, obeyed = game.players[p], intent.verb, intent.target, False
    if intent.smart and intent.kind == ENEMY:
      verb = ATTACK_UNIT
    if verb == ATTACK_UNIT and target not in player.seen:
      verb = ATTACK
    for body in intent.bodies:
      if body.slot < self.s:
        body.rally, obeyed = (intent.x, intent.y), True
        continue
      if verb == REPAIR and body.slot == target:
        continue
      gathers = intent.smart and intent.kind == RESOURCE and self.row(body)["worker"]
      does = GATHER if gathers else verb
      if intent.smart and intent.own is not None and intent.own.name in HALLS and body.cargo:
        does = RETURN
      if does == RETURN and not body.cargo:
        continue
      if does == ATTACK_UNIT:
        flies = self.row(game.players[1 - p].bodies[target])["flying"]
        does = does if self.row(body)["air" if flies else "ground"]["damage"] > 0 else ATTACK
      obeyed = True
      order = Order(does, intent.x, intent.y, target if target is not None else 0, intent.product)
      if command["queued"] and body.order.verb != IDLE:
        body.later = order
      else:
        body.order, body.trip = order, 0
        body.later = Order(PATROL, body.x, body.y) if does == PATROL else Order()
      if intent.builds:
        break
    return obeyed

  def _check_queues(self, bodies, product):
    """Raises Refused unless the queue of some body has room."""
    larva = self.table.makes(product)["larva"]
    if any(not b.queue if self.turns(product) else len(b.queue) < QUEUE and (
        b.larvae or not larva) for b in bodies):
      return
    raise Refused("QueueIsFull" if not larva or any(b.larvae for b in bodies) else
                  "NotEnoughCharges")

  def next_order(self, body, mines):
    """Continues with the queued order, else mines or idles."""
    now = body.order
    body.trip = 0
    if body.later.verb == IDLE:
      body.order = Order(GATHER if mines else IDLE, target=-1)
      return
    body.order = body.later
    back = now if now.verb == PATROL else body
    body.later = Order(PATROL, back.x, back.y) if body.order.verb == PATROL else Order()

  # Immediate effects.

  def leave(self, game, p, body):
    """Removes a body from the map."""
    del game.players[p].bodies[body.slot]
    game.players[p].targeted.discard(body.slot)
    game.players[1 - p].targeted.discard(self.n + body.slot)

  def use(self, game, p, issued):
    """Uses an ability."""
    player, function = game.players[p], issued["function"]
    users = issued["bodies"]
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
      target = player.bodies.get(issued["target"])
      if function == "Effect_Scan_pt":
        player.scan = [issued["x"], issued["y"], 196]
      elif function == "Effect_InjectLarva_unit":
        target.injected = 464 // self.tier.tempo
      else:
        target.boosted = 320 // self.tier.tempo
    elif function == "Cancel_quick":
      for body in users:
        row = self.row(body)
        self.pay(player, -int(0.75 * row["minerals"]), -int(0.75 * row["vespene"]))
        self.leave(game, p, body)
      for body in users:  # Zerg structures return their Drone
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
    """Records what appeared in the statistics and the score."""
    player = game.players[p]
    if begun or births:
      game.last_event = game.loop if self.tier.stalemate_loops else game.last_event
    for name, x, y in ([begun] if begun else []) + births:
      row = self.table.unit[name]
      player.made.add(dense_type(name))
      player.score["structures" if row["structure"] else "units"] += row["value"]
      if not row["worker"] and name not in SUPPLY and len(player.build_order) < 20:
        player.build_order.append((dense_type(name), grid(self.table, x), grid(self.table, y)))

  def step(self, game):
    """Plays a step of 8 game loops."""
    can = [game.players[p].command is not None and self.available(
      game, p, game.players[p].command["function"]) for p in range(2)]
    issued = [self.give_orders(game, p, can[p]) for p in range(2)]
    for p, each in enumerate(issued):
      if each is not None and each["function"] not in self.functions:
        self.use(game, p, each)
    for p, each in enumerate(issued):
      if each is not None and each["function"] in self.functions:
        self.train(game.players[p], each)
    births = [self.finish(game, player) for player in game.players]
    for player in game.players:
      self.grow_larvae(player)
    self.mine(game)
    begun = self.construct(game)
    for p in range(2):
      self.record(game, p, begun[p], births[p])
    fight_and_see(self, game)
