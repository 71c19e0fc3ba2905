"""Mining: trips from a patch to a town hall and back, against numbers computed by hand."""

import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import TIER, S, give, host
from tests.environments.skirmish.places import GAS_PLACE, GEYSER, HOME, PROTOSS, TERRAN, UNIT, ZERG
from tests.environments.skirmish.scenes import close, put, run, same, scene

pytestmark = pytest.mark.slow  # the default tier takes a minute to compile
PATCH = TIER.patches[0]
AWAY = np.subtract(PATCH, HOME) / np.hypot(*np.subtract(PATCH, HOME))
BESIDE = np.subtract(PATCH, 1.2 * AWAY)  # where a miner of the patch stands
OFF = np.add(HOME, -np.array(AWAY) * 3.4)  # in reach of the town hall for a delivery


@pytest.mark.parametrize("race", [TERRAN, PROTOSS, ZERG])
def test_gas_loads_are_four_and_three_workers_saturate_a_geyser(default_game, race):
  state = scene(default_game, race)
  names = {TERRAN: ("Refinery", "SCV"), PROTOSS: ("Assimilator", "Probe"),
           ZERG: ("Extractor", "Drone")}[race]
  put(state, 1, names[0], GAS_PLACE)
  crews = [1, 2, 3, 4, 6]
  for g, count in enumerate(crews):
    for i in range(count):
      put(state, UNIT + i, names[1], np.add(GAS_PLACE, (0.0, 1.2)), games=g,
          verb=constants.GATHER, target=GEYSER)
  state = run(default_game, state, 60)
  # A trip takes 40 loops, 5 steps. More than three workers share the income of three.
  trips = [12 * 1, 12 * 2, 12 * 3, 8 * 4, 6 * 6]
  same(state.vespene[:5, 0], 4 * np.array(trips))
  same(state.score.collected_vespene[:5, 0], 4 * np.array(trips))
  same(state.patches[:5, 0, GEYSER], 1500 - 4 * np.array(trips))
  same(state.minerals[:5, 0], 0)


def test_twenty_two_drones_mine_out_the_last_patch(default_game):
  """A load takes 24 units of work. 12 units a step make 24 for each of 22 Drones in 44 steps."""
  state = scene(default_game, ZERG)
  for i in range(22):
    put(state, UNIT + i, "Drone", BESIDE, verb=constants.GATHER, target=0)
  state.patches[:], state.memory.patches[:] = 0, 0
  state.patches[:, 0, 0] = state.memory.patches[:, 0, 0] = 220
  found = []
  run(default_game, state, 90, lambda s: found.append(
    (s.cargo[0, 0, :22].sum(), s.minerals[0, 0], s.patches[0, 0, 0])))
  # They take their loads together and deliver them in the next step.
  assert found[42:46] == [(0, 0, 220), (110, 0, 110), (0, 110, 110), (0, 110, 110)]
  assert found[87:] == [(0, 110, 110), (110, 110, 0), (0, 220, 0)]


def test_more_workers_at_a_resource_never_mine_less(default_game):
  """n workers share 12 (18) units of work a step: 24 each in 2 n (4/3 n) steps, then a delivery."""
  crowds = [(name, n) for name in ("patch", "geyser") for n in (12, 13, 15, 18, 19, 21, 22, 24)
            if name == "patch" or n % 3 == 0 and n >= 18]
  steps = [2 * n + 1 if name == "patch" else 4 * n // 3 + 1 for name, n in crowds]
  for (name, n), most in zip(crowds, steps, strict=True):
    state = scene(default_game)
    put(state, 1, "Refinery", GAS_PLACE)
    for i in range(n):
      put(state, UNIT + i, "SCV", BESIDE if name == "patch" else np.add(GAS_PLACE, (0.0, 1.2)),
          verb=constants.GATHER, target=0 if name == "patch" else GEYSER)
    if name == "patch":  # no other patch that the workers could go to
      state.patches[:, :, 1:], state.memory.patches[:, :, 1:] = 0, 0
    found = run(default_game, state, most)
    same(found.minerals[:, 0] if name == "patch" else found.vespene[:, 0],
         n * (5 if name == "patch" else 4))


def test_gas_needs_an_own_finished_gas_structure(default_game):
  state = scene(default_game, TERRAN, PROTOSS)
  put(state, UNIT, "SCV", np.add(GAS_PLACE, (0.0, 1.2)), verb=constants.GATHER, target=GEYSER)
  for g, player in ((1, 0), (2, 1)):
    put(state, 1, ("Refinery", "Assimilator")[player], GAS_PLACE, player=player, games=g)
  state.unfinished[1, 0, 1] = 4000
  state = run(default_game, state, 1)
  # The workers mine the nearest mineral patch instead.
  square = ((np.array(TIER.patches)[:GEYSER] - np.add(GAS_PLACE, (0.0, 1.2))) ** 2).sum(-1)
  same(state.orders.target[:3, 0, 0], square.argmin())
  same(run(default_game, state, 30).vespene[:3, 0], 0)


def test_a_trip_takes_forty_loops_eight_of_them_walking(default_game):
  state = scene(default_game)
  put(state, UNIT, "SCV", BESIDE, verb=constants.GATHER, target=0)
  found = []
  run(default_game, state, 10, lambda s: found.append(
    (s.trip[0, 0, 0], s.cargo[0, 0, 0], s.minerals[0, 0], s.patches[0, 0, 0])))
  trip = [(6, 0, 0, 900), (12, 0, 0, 900), (18, 0, 0, 900), (0, 5, 0, 895), (0, 0, 5, 895)]
  assert found == trip + [(t, c, m + 5, p - 5) for t, c, m, p in trip]


def test_loads_go_to_the_nearest_finished_own_town_hall(default_game):
  """At a base; far from every town hall; no town hall; an unfinished one; the enemy's."""
  state = scene(default_game)
  far = GEYSER + 1  # of the second base
  place = np.subtract(TIER.patches[far], (0.0, 1.2))
  for g in range(5):
    put(state, UNIT, "SCV", BESIDE if g == 0 else place, games=g, verb=constants.GATHER,
        target=0 if g == 0 else far)
  state.cargo[:5, 0, 0] = 5
  state.kind[2:5, 0, 0] = 0
  put(state, 1, "Barracks", (0.0, 0.0), games=slice(2, 5))
  put(state, 2, "CommandCenter", np.add(place, (5.0, 0.0)), games=3)
  state.unfinished[3, 0, 2] = 4000
  put(state, 2, "CommandCenter", np.add(place, (5.0, 0.0)), player=1, games=4)
  state.memory.patches[:, 0, 0] = 900
  arrived = np.full(5, 99)
  for step in range(20):
    state = run(default_game, state)
    arrived = np.where((arrived == 99) & (state.minerals[:5, 0] > 0), step + 1, arrived)
  # Two ticks of 0.703 a step, to within 3.5 of the town hall, and a step for the payment.
  way = np.hypot(*(np.array([BESIDE, place]) - HOME).T) - constants.DROP_REACH
  steps = np.ceil(way / (8 * 2.8125 / 16)) + 1
  same(arrived, [*steps, 99, 99, 99])
  same(state.cargo[2:5, 0, 0], 5)
  close(np.stack([state.x[2:5, 0, S], state.y[2:5, 0, S]], axis=-1), place)  # the workers wait


def test_workers_keep_their_load_through_other_orders(default_game):
  """Moved away, then sent to another patch or a geyser: the load is paid first."""
  state = scene(default_game)
  put(state, 1, "Refinery", GAS_PLACE)
  put(state, UNIT, "SCV", BESIDE, verb=constants.GATHER, target=0)
  state.cargo[:, 0, 0] = 5
  moved = run(default_game, give(state, "Move_pt", slots=[UNIT], x=0.0, y=0.0), 4)
  same(moved.cargo[:, 0, 0], 5)
  same(moved.minerals[:, 0], 0)
  for target in (1, GEYSER):
    found, seen = moved, []
    order = {"slots": [UNIT], "target": target, "kind": constants.RESOURCE}
    for step in range(16):
      found = run(default_game, give(found, "Harvest_Gather_unit", **order) if not step else found)
      seen.append((found.minerals[0, 0], found.vespene[0, 0], found.patches[0, 0, target]))
    paid = next(i for i, each in enumerate(seen) if each[0])
    assert seen[paid] == (5, 0, seen[0][2])  # before a new load is taken
    mined = found.minerals - 5 if target == 1 else found.vespene
    assert (mined[:, 0] > 0).all() and (target == 1 or (found.minerals[:, 0] == 5).all())


def test_a_worker_ordered_to_return_delivers_and_mines_again(default_game):
  """By function or smart command; workers without a load do not move."""
  state = scene(default_game)
  for i, place in enumerate([(0.0, 0.0), (1.0, 0.0)]):
    put(state, UNIT + i, "SCV", place)
  state.cargo[:, 0, 0] = 4
  state.cargo_gas[:, 0, 0] = True
  back = vocabulary.FUNCTIONS.index("Harvest_Return_quick")
  same(host(default_game.observe(state)[0].available_actions)[:, 0, back], True)
  slots = [UNIT, UNIT + 1]
  for given in (give(state, "Harvest_Return_quick", slots=slots),
                give(state, "Smart_unit", slots=slots[:1], target=0, kind=constants.OWN)):
    found = run(default_game, given)
    same(found.orders.verb[:, 0, :2], [constants.RETURN, constants.IDLE])
    rows = host(default_game.observe(found)[0].entities)[:, 0]
    same(rows[:, 1, types.COLUMN["order_id_0"]], back)
    found = run(default_game, found, 16)
    same(found.vespene[:, 0], 4)
    same(found.orders.verb[:, 0, :2], [constants.GATHER, constants.IDLE])
    close(found.x[:, 0, S + 1], 1.0)
  same(host(default_game.observe(found)[0].available_actions)[:, 0, back], False)


def test_queued_orders_start_after_the_delivery(default_game):
  state = scene(default_game)
  put(state, UNIT, "SCV", OFF, verb=constants.GATHER, target=0)
  state.cargo[:, 0, 0] = 5
  found = run(default_game, give(state, "Move_pt", slots=[UNIT], x=0.0, y=0.0, queued=True))
  same(found.minerals[:, 0], 5)
  same(found.orders.verb[:, 0, 0], constants.MOVE)


def test_a_load_is_observed_as_a_buff_by_its_player_only(default_game):
  names = {TERRAN: ("SCV", ""), PROTOSS: ("Probe", "Protoss"), ZERG: ("Drone", "Zerg")}
  for race, (name, suffix) in names.items():
    state = scene(default_game, race)
    for i, place in enumerate([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)]):
      put(state, UNIT + i, name, place)
    put(state, UNIT, "Marine", (1.0, 1.0), player=1)
    state.cargo[:, 0, :2] = 5, 4
    state.cargo_gas[:, 0, 1] = True
    rows = host(default_game.observe(state)[0].entities)
    buffs = rows[..., types.COLUMN["buff_id_0"]]
    minerals, gas = (vocabulary.BUFFS.index(f"Carry{what}") for what in (
      "MineralFieldMinerals", f"HarvestableVespeneGeyserGas{suffix}"))
    same(buffs[:, 0, :4], [0, minerals, gas, 0])
    assert not buffs[:, 1].any()


def test_dead_workers_lose_their_load(default_game):
  state = scene(default_game)
  put(state, UNIT, "SCV", (0.0, 0.0))
  state.cargo[:, 0, 0], state.health[:, 0, UNIT] = 5, 0.0
  found = run(default_game, state)
  same(found.kind[:, 0, UNIT], 0)
  same(found.cargo[:, 0, 0], 0)
  same(found.minerals[:, 0], 0)


def test_a_worker_sent_to_another_resource_starts_from_zero(default_game):
  """One that lost its geyser; one of three at a patch; one that stays."""
  state = scene(default_game)
  other = TIER.patches[1]
  between = np.add(PATCH, other) / 2
  assert np.hypot(*np.subtract(PATCH, other)) < 3.0  # both in reach from there
  put(state, UNIT, "SCV", between, games=0, verb=constants.GATHER, target=GEYSER)
  for i in range(3):
    put(state, UNIT + i, "SCV", between, games=1, verb=constants.GATHER, target=0)
  put(state, UNIT, "SCV", between, games=2, verb=constants.GATHER, target=0)
  state.trip[:3, 0, 0] = 18  # one step before a load
  state = run(default_game, state)
  same(state.orders.target[:3, 0, 0] == GEYSER, False)
  same(state.orders.target[1, 0, :3], [1, 0, 0])
  same(state.cargo[:3, 0, 0], [0, 0, 5])
  same(state.trip[:3, 0, 0], [6, 6, 0])


def test_income_of_150_percent_pays_one_and_a_half_loads(default_game):
  state = scene(default_game)
  put(state, UNIT, "SCV", BESIDE, verb=constants.GATHER, target=0)
  state.match_up.income[1] = 150
  state = run(default_game, state, 50)
  same(state.minerals[:2, 0], [10 * 5, 10 * 7])  # 7.5 a trip, rounded down
  same(state.patches[:2, 0, 0], 900 - 50)  # the patch loses the same


def test_the_last_minerals_go_first_to_the_player_of_that_half(default_game):
  """Two workers of one player and one of the other are done at a patch."""
  state = scene(default_game)
  for i in range(2):
    put(state, UNIT + i, "SCV", BESIDE, verb=constants.GATHER, target=0)
  half = TIER.resources // 2
  put(state, UNIT, "SCV", BESIDE, player=1, verb=constants.GATHER, target=half)
  state.trip[:, 0, :2] = state.trip[:, 1, 0] = 18
  left = [16, 15, 8, 5, 1]
  for g, amount in enumerate(left):
    state.patches[g, 0, 0] = state.memory.patches[g, 0, 0] = amount
    state.memory.patches[g, 1, half] = amount
  state = run(default_game, state)
  same(state.cargo[:5, 0, :2], [[5, 5], [5, 5], [5, 0], [5, 0], [1, 0]])
  same(state.cargo[:5, 1, 0], [5, 5, 3, 0, 0])
  same(state.patches[:5, 0, 0], [1, 0, 0, 0, 0])
