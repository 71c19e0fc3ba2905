"""Recovery in the twin: energy, shields, healing and repair."""

import math

from tests.environments.skirmish.twin.known import STEP
from tests.environments.skirmish.twin.state import REPAIR


def recover(twin, game):
  """Advances everything that recovers or runs out by a step."""
  table = twin.table
  for player in game.players:
    for body in player.bodies.values():
      row, alive = twin.row(body), body.health > 0
      whole = not body.unfinished
      body.energy = min(body.energy + STEP * 0.5625 / 16, row["energy"]) if whole and alive else 0.0
      if table.rules.has_shields:
        body.calm = 0 if body.hurt else min(body.calm + STEP, 1600)
        if whole and alive and body.calm >= 160:
          body.shield = min(body.shield + STEP * 2.0 / 16, row["shield"])
      if row["race"] == "Zerg" and alive and whole:
        body.health = min(body.health + STEP * 0.2734 / 16, twin.most_health(player, body))
      body.stimmed = max(body.stimmed - STEP, 0)
    player.scan[2] = max(player.scan[2] - STEP, 0)
    _heal(twin, game, player)
    _repair(twin, game, player)


def _heal(twin, game, player):
  """Each Medivac heals the nearest damaged body: 4.5 hit points a step for 1.5 energy."""
  hurt = [b for b in twin.units(player) if "Biological" in twin.row(b)["tags"]
          and 0 < b.health < twin.most_health(player, b)]
  helped = {}
  for medic in twin.units(player):
    if medic.name != "Medivac" or medic.energy < 1.5:
      continue
    near = sorted(((b.x - medic.x) ** 2 + (b.y - medic.y) ** 2, b.slot) for b in hurt)
    near = [entry for entry in near if game.at_most(entry[0], 16.0)]
    if near:
      game.close += len(near) > 1 and near[1][0] - near[0][0] < 1e-4
      helped[near[0][1]] = helped.get(near[0][1], 0) + 1
      medic.energy -= 1.5
  for slot, count in helped.items():
    body = player.bodies[slot]
    body.health = min(body.health + 4.5 * count, twin.most_health(player, body))


def _repair(twin, game, player):
  """A repair from zero takes the production time and a quarter of the minerals."""
  repairers = {}
  for body in twin.units(player):
    target = player.bodies.get(body.order.target)
    if body.order.verb == REPAIR and target is not None and twin.repairable(target):
      reach = 1.0 + twin.row(target)["radius"]
      if game.at_most((body.x - target.x) ** 2 + (body.y - target.y) ** 2, reach * reach):
        repairers[target.slot] = repairers.get(target.slot, 0) + 1
  if player.minerals > 0:
    for slot, count in repairers.items():
      target = player.bodies[slot]
      row = twin.row(target)
      loops = twin.row_of_making(target)["loops"]
      player.debt += 0.25 * row["minerals"] * count * STEP / loops
      target.health = min(target.health + row["health"] * count * STEP / loops, row["health"])
  game.close += abs(player.debt - round(player.debt)) < 1e-4 and player.debt > 1e-4
  due = min(math.floor(player.debt), player.minerals)
  player.debt -= due
  player.minerals -= due
  player.score["spent"] += due
  for body in twin.units(player):
    if body.order.verb == REPAIR:
      target = player.bodies.get(body.order.target)
      if target is None or not twin.repairable(target):
        twin.next_order(body, True)
