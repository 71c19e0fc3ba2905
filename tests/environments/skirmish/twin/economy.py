"""The twin's economy: paying, training, mining, building."""

import math

import numpy as np

from starleague.agent import vocabulary
from tests.environments.skirmish.twin.known import QUEUE, STEP, Known
from tests.environments.skirmish.twin.state import (
  BUILD,
  CONSTRUCT,
  GATHER,
  HALLS,
  IDLE,
  MOVE,
  RETURN,
  Body,
  Order,
)


class Economy(Known):
  """Payment, production, mining and construction of a game, in place."""

  def pay(self, player, minerals, vespene):
    player.minerals -= minerals
    player.vespene -= vespene
    player.score["spent"] += minerals
    player.score["spent_vespene"] += vespene

  def train(self, player, issued):
    """Queues a product as often as commanded and affordable, structure by structure."""
    product = issued["product"]
    if product is None:
      return
    row, once = self.table.makes(product), False
    for body in issued["bodies"]:
      if self.turns(product) and body.queue:
        continue
      for _ in range(issued["repeat"]):
        taken, most = self.food(player)
        eats = row["food"] * max(row["brood"], 1)
        if (len(body.queue) == QUEUE or player.minerals < row["minerals"]
            or player.vespene < row["vespene"] or (eats and taken + eats > most)
            or self.room(player) < row["brood"] or (row["larva"] and not body.larvae)
            or (once and not row["brood"])):
          break
        once = True
        self.pay(player, row["minerals"], row["vespene"])
        body.larvae -= row["larva"]
        body.queue.append([product, row["loops"]])

  # What each step advances.

  def finish(self, game, player):
    """Advances all queues by a step; returns what appears: [(name, x, y)]."""
    done = []
    for body in self.structures(player):
      pace = STEP * 3 // 2 if body.boosted else STEP
      body.boosted = max(body.boosted - STEP, 0)
      # Products of larvae are made in parallel, all others in sequence.
      in_line = [entry for entry in body.queue if not self.table.makes(entry[0])["larva"]]
      runs = [entry for entry in body.queue
              if self.table.makes(entry[0])["larva"] or entry is in_line[0]]
      for entry in runs:
        entry[1] -= pace
      ready = [entry for entry in runs if entry[1] <= 0]
      if ready:
        product, over = ready[0]
        body.queue = [entry for entry in body.queue if entry is not ready[0]]
        if in_line[1:] and ready[0] is in_line[0]:
          in_line[1][1] += over
        done.append((body, product))
    old = {unit.slot: self.added(player, "health", unit.name) for unit in self.units(player)}
    for body, product in done:
      if product in self.table.upgrade:
        player.upgrades.add(product)
        player.researched.add(vocabulary.UPGRADES.index(product))
      elif self.turns(product):
        player.score["structures"] -= self.row(body)["value"]
        body.name, body.energy = product, 50.0 if self.table.unit[product]["energy"] else (
          body.energy)
    for unit in self.units(player):
      unit.health += self.added(player, "health", unit.name) - old[unit.slot]
    births = []
    for i in range(2):
      for body, product in done:
        if i == 0 and self.turns(product):
          births.append((product, body.x, body.y, None))
        if product in self.table.unit and self.table.unit[product]["brood"] > i:
          angle = np.linspace(0.0, np.pi / 2, self.s)[body.slot] + 0.3 * i
          radius = self.row(body)["radius"] + 0.7
          x = body.x + player.side * radius * math.cos(angle)
          y = body.y + player.side * radius * math.sin(angle)
          if self.table.rules.terrain is not None and not (
              self.on(game, player, "passable", x, y) and self.on(game, player, "high", x, y)
              == self.on(game, player, "high", body.x, body.y)):
            x, y = body.x, body.y  # a cliff is between
          births.append((product, x, y, body.rally))
    free = [i for i in range(self.s, self.n) if i not in player.bodies]
    born = [birth for birth in births if not self.turns(birth[0])]
    assert len(born) <= len(free)
    for slot, (name, x, y, rally) in zip(free, born, strict=False):
      row = self.table.unit[name]
      unit = Body(slot, name, x, y, row["health"] + self.added(player, "health", name),
                  row["shield"], min(row["energy"], 50.0))
      unit.order = Order(GATHER, target=-1) if row["worker"] else (
        Order(MOVE, *rally) if rally else Order())
      player.bodies[slot] = unit
    return [birth[:3] for birth in births]

  def grow_larvae(self, player):
    for body in self.structures(player):
      if body.unfinished or body.name not in self.table.hatcheries:
        body.larvae = body.larva_loops = body.injected = 0
        continue
      hatches = 0 < body.injected <= STEP
      body.injected = max(body.injected - STEP, 0)
      if body.larvae < 3:
        body.larva_loops = (body.larva_loops or math.ceil(176 / self.tier.tempo)) - STEP
        if body.larva_loops <= 0:
          body.larva_loops = 0
          body.larvae += 1
      else:
        body.larva_loops = 0
      body.larvae = min(body.larvae + 3 * hatches, 19)

  def _assign(self, game, p, miners):
    """Assigns miners to resources; returns how many each resource had before."""
    player = game.players[p]
    count = len(self.places)
    assigned = [sum(b.order.target == r for b in miners) for r in range(count)]
    rich = [left > 0 for left in player.known_patches]
    served = [self.served(player, r) for r in range(count)]
    open_ = [rich[r] and served[r] and not self.geyser[r] for r in range(count)]
    crowds = [(assigned[r], -r) for r in range(count) if served[r] and not self.geyser[r]]
    vacant = [(assigned[r], r) for r in range(count) if open_[r]]
    crowd, full = max(crowds, default=(0, 0))
    space, empty = min(vacant, default=(self.tier.units, 0))
    moved = False
    for body in miners:
      target = body.order.target
      lost = target < 0 or not (rich[target] and self.tapped(player, target))
      if lost:
        costs = []
        for r in range(count):
          x, y = self.place(player, r)
          cost = 4.0 * assigned[r] if open_[r] else (
            1e6 if rich[r] and not self.geyser[r] else 2e6)
          costs.append((x - body.x) ** 2 + (y - body.y) ** 2 + cost)
        target = int(np.argmin(costs))
        # Float32 numbers near a million are multiples of a sixteenth.
        near = sorted(costs)[1] - costs[target]
        game.close += near < (0.2 if costs[target] > 1e5 else 1e-3)
      moves = (crowd > 2 and space < 2 and target == -full and not moved)
      if moves:
        moved, target = True, empty
      body.order.target = target
      body.trip = 0 if moves or lost else body.trip
    return assigned

  def _work(self, game, p, miners, assigned):
    """Advances miners' work; returns those whose work is done, by resource."""
    player, done = game.players[p], [[] for _ in self.places]
    length = 6 * (round(self.tier.trip_loops / self.tier.tempo / STEP) - 1)
    for body in miners:
      target = body.order.target
      x, y = self.place(player, target)
      if body.cargo or not game.less((x - body.x) ** 2 + (y - body.y) ** 2, 2.25):
        continue
      if (player.known_patches[target] > 0 and self.tapped(player, target)
          and self.contents(game, p, target) > 0):
        work = 6 * (3 if self.geyser[target] else 2)
        crowd = max(assigned[target], work // 6)
        now = game.loop // STEP
        body.trip += work // crowd if crowd <= work else (
          now * work // crowd - (now - 1) * work // crowd)  # whole turns up to now and before
      if body.trip >= length:
        done[target].append(body)
    return done

  def home(self, game, player, body):
    """The nearest finished town hall, or None, and whether it is in reach for a delivery."""
    halls = sorted(((b.x - body.x) ** 2 + (b.y - body.y) ** 2, b.slot)
                   for b in self.structures(player) if b.name in HALLS and not b.unfinished)
    if not halls:
      return None, False
    game.close += len(halls) > 1 and halls[1][0] - halls[0][0] < 1e-3
    return player.bodies[halls[0][1]], game.at_most(halls[0][0], 12.25)

  def _deliver(self, game, player, loaded):
    """Pays for delivered loads."""
    brought, arrived = [0, 0], set()
    for body in self.units(player):
      if body.order.verb not in (GATHER, RETURN):
        continue
      if body.slot in loaded and self.home(game, player, body)[1]:
        brought[body.cargo_gas] += body.cargo
        body.cargo, body.cargo_gas = 0, False
        arrived.add(body.slot)
    minerals, vespene = (b * player.income // 100 for b in brought)
    player.minerals += minerals
    player.vespene += vespene
    player.score["collected"] += minerals
    player.score["collected_vespene"] += vespene
    if minerals or vespene:
      game.last_event = game.loop
    for body in self.units(player):
      if (body.order.verb == RETURN and not body.cargo) or (
          body.slot in arrived and body.later.verb != IDLE):
        self.next_order(body, True)

  def mine(self, game):
    """Assigns workers, fills them up, and pays for delivered loads."""
    done, loaded = [], []
    for p, player in enumerate(game.players):
      miners = [b for b in self.units(player) if b.order.verb == GATHER]
      loaded.append({b.slot for b in self.units(player) if b.cargo})
      done.append(self._work(game, p, miners, self._assign(game, p, miners)))
    half = len(self.places) // 2
    for owner in range(2):
      for r in range(half):
        load, patches = 4 if self.geyser[r] else 5, game.players[owner].patches
        harvesters = [done[owner][r], done[1 - owner][half + r]]
        enough = load * sum(map(len, harvesters)) <= patches[r]
        for bodies in harvesters:  # first the player whose half it is
          for body in bodies if enough else bodies[:1]:
            body.cargo = min(load, patches[r])
            if body.cargo:
              body.cargo_gas, body.trip = self.geyser[r], 0
            patches[r] -= body.cargo
    for player, slots in zip(game.players, loaded, strict=True):
      self._deliver(game, player, slots)

  def construct(self, game):
    """Advances construction; builders at their site begin. Returns what begins."""
    for player in game.players:
      for body in self.structures(player):
        if body.unfinished:
          row = self.row(body)
          share = 0.9 * STEP / row["loops"]
          body.health = min(row["health"], body.health + share * row["health"])
          body.shield = min(row["shield"], body.shield + share * row["shield"])
          body.unfinished = max(body.unfinished - STEP, 0)
          if not body.unfinished:
            body.energy = min(row["energy"], 50.0)
            body.larvae = 1 if body.name in self.table.hatcheries else body.larvae
    plans = [self._begin(game, p) for p in range(2)]  # both from the same map
    for p, (builder, slot) in enumerate(plans):
      player = game.players[p]
      if slot is not None:
        order = builder.order
        row = self.table.unit[order.product]
        self.pay(player, row["minerals"], row["vespene"])
        player.bodies[slot] = Body(
          slot, order.product, order.x, order.y, 0.1 * row["health"], 0.1 * row["shield"],
          unfinished=row["loops"])
        if row["race"] == "Terran":
          order.verb, order.target = CONSTRUCT, slot
        elif row["race"] == "Zerg":
          self.leave(game, p, builder)
      for body in self.units(player):
        if body.order.verb == CONSTRUCT:
          site = player.bodies.get(body.order.target)
          if site is None or not site.unfinished or (
              site.x, site.y) != (body.order.x, body.order.y):
            self.next_order(body, True)
        elif body is builder:
          self.next_order(body, True)
    return [(b.order.product if slot is None else game.players[p].bodies[slot].name,
             game.players[p].bodies[slot].x, game.players[p].bodies[slot].y)
            if slot is not None else None for p, (b, slot) in enumerate(plans)]

  def _begin(self, game, p):
    """The first builder at its site, or None, and the slot that its structure takes."""
    player = game.players[p]
    for body in self.units(player):
      order = body.order
      if order.verb != BUILD:
        continue
      row = self.table.unit[order.product]
      if not game.at_most((order.x - body.x) ** 2 + (order.y - body.y) ** 2,
                          (row["radius"] + 0.8) ** 2):
        continue
      slots = range(self.tier.unarmed, self.s) if row["fighter"] else range(self.tier.unarmed)
      free = [i for i in slots if i not in player.bodies]
      if (free and player.minerals >= row["minerals"] and player.vespene >= row["vespene"]
          and self.stands(player, row["requirement"])
          and self.placeable(game, p, order.x, order.y, order.product, ordered=False)):
        return body, free[0]
      return body, None
    return None, None
