"""The twin's economy: paying, training, mining, building."""

import math

import numpy as np

from starleague.agent import vocabulary
from tests.actor.environments.skirmish_twin_known import (
  QUEUE,
  STEP,
  Known,
)
from tests.actor.environments.skirmish_twin_state import (
  BUILD,
  CONSTRUCT,
  GATHER,
  MOVE,
  Body,
  Order,
)


class Economy(Known):
  """What costs time and money, of one game in place."""

  def pay(self, player, minerals, vespene):
    player.minerals -= minerals
    player.vespene -= vespene
    player.score["spent"] += minerals
    player.score["spent_vespene"] += vespene

  def train(self, player, given):
    """As often as it can be paid, fed and housed, building after building."""
    product = given["product"]
    if product is None:
      return
    row, once = self.table.makes(product), False
    for body in given["bodies"]:
      if self.turns(product) and body.queue:
        continue
      for _ in range(given["repeat"]):
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

  # Time goes on.

  def finish(self, player):
    """A step of all queues; what is born: [(name, x, y)]."""
    done = []
    for body in self.structures(player):
      pace = STEP * 3 // 2 if body.boosted else STEP
      body.boosted = max(body.boosted - STEP, 0)
      # Larvae become what they become side by side; all else waits for what is before it.
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
          births.append((product, body.x + player.side * radius * math.cos(angle),
                         body.y + player.side * radius * math.sin(angle), body.rally))
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

  def _miners(self, game, p):
    """Sends miners, moves them along their trips; resources to the trips that ended there."""
    player = game.players[p]
    miners = [b for b in self.units(player) if b.order.verb == GATHER]
    count = len(self.places)
    assigned = [sum(b.order.target == r for b in miners) for r in range(count)]
    rich = [left > 0 for left in player.known_patches]
    served = [self.served(player, r) for r in range(count)]
    tapped = [self.tapped(player, r) for r in range(count)]
    open_ = [rich[r] and served[r] and not self.geyser[r] for r in range(count)]
    crowds = [(assigned[r], -r) for r in range(count) if served[r] and not self.geyser[r]]
    vacant = [(assigned[r], r) for r in range(count) if open_[r]]
    crowd, full = max(crowds, default=(0, 0))
    space, empty = min(vacant, default=(self.tier.units, 0))
    longest = 6 * round(self.tier.trip_loops / self.tier.tempo / STEP)
    moved, trips = False, [0] * count
    for body in miners:
      target = body.order.target
      lost = target < 0 or not (rich[target] and tapped[target])
      if lost:
        costs = []
        for r in range(count):
          x, y = self.place(player, r)
          cost = 4.0 * assigned[r] if open_[r] else (
            1e6 if rich[r] and not self.geyser[r] else 2e6)
          costs.append((x - body.x) ** 2 + (y - body.y) ** 2 + cost)
        target = int(np.argmin(costs))
        # A float32 near a million counts in sixteenths.
        near = sorted(costs)[1] - costs[target]
        game.close += near < (0.2 if costs[target] > 1e5 else 1e-3)
      moves = (crowd > 2 and space < 2 and target == -full and not moved)
      if moves:
        moved, target = True, empty
      body.order.target = target
      x, y = self.place(player, target)
      working = game.less((x - body.x) ** 2 + (y - body.y) ** 2, 2.25)
      trip = 0 if moves or lost else body.trip
      if working and served[target] and rich[target] and tapped[target] and (
          self.contents(game, p, target) > 0):
        capacity = 3 if self.geyser[target] else 2
        trip += 6 * capacity // max(assigned[target], capacity)
      if working and trip >= longest:
        trips[target] += 1
      body.trip = trip - longest if trip >= longest else trip
    return trips

  def mine(self, game):
    trips = [self._miners(game, p) for p in range(2)]
    half, brought = len(self.places) // 2, np.zeros((2, 2), int)
    for owner in range(2):
      for r in range(half):
        left, load = game.players[owner].patches[r], 4 if self.geyser[r] else 5
        hands = [trips[owner][r], trips[1 - owner][half + r]]
        for q, number in zip((owner, 1 - owner), hands, strict=True):
          paid = load * number if load * sum(hands) <= left else (
            left * number // max(sum(hands), 1))
          brought[q, int(self.geyser[r])] += paid
          game.players[owner].patches[r] -= paid
    for q, player in enumerate(game.players):
      minerals, vespene = (int(b) * player.income // 100 for b in brought[q])
      player.minerals += minerals
      player.vespene += vespene
      player.score["collected"] += minerals
      player.score["collected_vespene"] += vespene
      if minerals or vespene:
        game.last_event = game.loop

  def construct(self, game):
    """What is under construction grows; a builder at its site begins. What begins."""
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
          if site is None or not site.unfinished:
            self.next_order(body, True)
        elif body is builder:
          self.next_order(body, True)
    return [(b.order.product if slot is None else game.players[p].bodies[slot].name,
             game.players[p].bodies[slot].x, game.players[p].bodies[slot].y)
            if slot is not None else None for p, (b, slot) in enumerate(plans)]

  def _begin(self, game, p):
    """The first builder at its site, None if there is none, and the slot that it fills."""
    player = game.players[p]
    for body in self.units(player):
      order = body.order
      if order.verb != BUILD:
        continue
      row = self.table.unit[order.product]
      if not game.at_most((order.x - body.x) ** 2 + (order.y - body.y) ** 2,
                          (row["radius"] + 0.8) ** 2):
        continue
      slots = range(self.tier.plain, self.s) if row["fighter"] else range(self.tier.plain)
      free = [i for i in slots if i not in player.bodies]
      if (free and player.minerals >= row["minerals"] and player.vespene >= row["vespene"]
          and self.stands(player, row["requirement"])
          and self.placeable(game, p, order.x, order.y, order.product, ordered=False)):
        return body, free[0]
      return body, None
    return None, None
