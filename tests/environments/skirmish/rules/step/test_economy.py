"""Larvae, training and morphs of the default tier against numbers computed by hand."""

import functools

import jax
import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.state import placement
from starleague.environments.skirmish.rules.step import economy
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import LOCAL, RULES, TYPES, S, give, host
from tests.environments.skirmish.places import HOME, PROTOSS, UNIT, ZERG
from tests.environments.skirmish.scenes import close, put, run, same, scene
from tests.environments.skirmish.states import first

pytestmark = pytest.mark.slow  # the default tier takes a minute to compile


def test_hatcheries_spawn_larvae_up_to_three(default_game):
  state = scene(default_game, ZERG)
  state.larvae[:] = 0
  found = []
  run(default_game, state, 40, lambda s: found.append(s.larvae[:, 0, 0]))
  # 176 loops at tempo 3 are 59, complete after eight steps.
  same(np.array(found).T, np.minimum((np.arange(40) + 1) // 8, 3))


def test_an_injection_adds_three_larvae(default_game):
  state = scene(default_game, ZERG)
  put(state, UNIT, "Queen", HOME)
  state.energy[:, 0, UNIT] = 25.0
  state.energy[1, 0, UNIT] = 24.9
  same(state.larvae[:, 0, 0], 3)
  state = give(state, "Effect_InjectLarva_unit", slots=[UNIT], target=0, kind=constants.OWN)
  found = []
  last = run(default_game, state, 25, lambda s: found.append(s.larvae[:2, 0, 0]))
  # 464 loops at tempo 3 are 154, complete after twenty steps.
  same(np.array(found)[:, 0], [3] * 19 + [6] * 6)
  same(np.array(found)[:, 1], 3)
  # 0.5625 a second of 16 loops: 25 steps give 7.03.
  close(last.energy[:2, 0, UNIT], [25 * 8 * 0.5625 / 16, 24.9 + 25 * 8 * 0.5625 / 16])
  effect = np.flatnonzero(vocabulary.EFFECT_FUNCTIONS == vocabulary.FUNCTIONS.index(
    "Effect_InjectLarva_unit"))
  same(last.executed.effects[:2, 0, effect[0]], [True, False])


@pytest.mark.parametrize("ground", range(3))
def test_units_appear_on_the_ground_of_their_structure(ground):
  """At every place of a Barracks and a Hatchery, from every slot, on each map."""
  terrain, middle = RULES.terrain, np.arange(48) - 23.5
  x, y = (axis.reshape(-1) for axis in np.meshgrid(middle, middle))
  state = first(RULES, ground=ground)
  on_map = functools.partial(placement.on_terrain, RULES, state)
  births = jax.jit(lambda state, done: economy._broods(RULES, state, done))
  beside = 0
  for name, unit in (("Barracks", "Marine"), ("Hatchery", "Zergling")):
    done = np.full((2, S), LOCAL[unit], np.int32)
    reach = 0.8 * TYPES.radius[LOCAL[name]]
    corners = [(x + dx * reach, y + dy * reach) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
    firm = np.all([terrain.buildable[ground, np.clip(np.floor(v + 24), 0, 47).astype(int),
                                     np.clip(np.floor(u + 24), 0, 47).astype(int)]
                   for u, v in corners], axis=0)
    for px, py in zip(x[firm], y[firm], strict=True):
      state.kind[:, :S], state.x[:, :S], state.y[:, :S] = LOCAL[name], px, py
      units = jax.tree.map(np.array, births(state, done))
      born = units.kind > 0
      assert on_map(terrain.passable, units.x, units.y)[born].all()
      at_home = on_map(terrain.high, state.x[:, :1], state.y[:, :1])
      assert (on_map(terrain.high, units.x, units.y) == at_home)[born].all()
      beside += np.sum((units.x != px)[born])
  assert beside > 1000  # most stand beside their structure


def test_a_hatchery_has_at_most_nineteen_larvae(default_game):
  state = scene(default_game, ZERG)
  before = [2, 15, 16, 17, 18, 19]
  state.larvae[:6, 0, 0] = before
  state.injected[:, 0, 0] = 8
  same(run(default_game, state).larvae[:6, 0, 0], [5, 18, 19, 19, 19, 19])


def test_a_hatchery_takes_one_injection_at_a_time(default_game):
  state = scene(default_game, ZERG)
  put(state, 1, "Hatchery", (-8.0, -8.0), games=2)
  put(state, UNIT, "Queen", HOME)
  state.energy[:, 0, UNIT] = 60.0
  state.injected[1:3, 0, 0] = 16
  inject = vocabulary.FUNCTIONS.index("Effect_InjectLarva_unit")
  can = host(default_game.observe(state)[0].available_actions)[:3, 0, inject]
  same(can, [True, False, True])  # the third has another hatchery, not injected
  order = {"slots": [UNIT], "kind": constants.OWN}
  found = run(default_game, give(state, "Effect_InjectLarva_unit", target=0, **order))
  step = 8 * 0.5625 / 16
  close(found.energy[:3, 0, UNIT], [35 + step, 60 + step, 60 + step])
  same(found.injected[:3, 0, 0], [154 - 8, 8, 8])
  # The next injection is possible once the larvae have spawned.
  found = run(default_game, give(run(default_game, found), "Effect_InjectLarva_unit", target=0,
                                 **order))
  close(found.energy[:3, 0, UNIT], [35 + 3 * step, 35 + 3 * step, 35 + 3 * step])
  same(found.larvae[:3, 0, 0], [3, 6, 6])


def test_one_larva_makes_two_zerglings(default_game):
  state = scene(default_game, ZERG)
  put(state, 1, "SpawningPool", (-10.0, -14.0))
  state.minerals[:] = 75
  state = run(default_game, give(state, "Train_Zergling_quick", slots=[0], repeat=3))
  same(state.minerals[:, 0], 25)
  same(state.larvae[:, 0, 0], 2)
  player = host(default_game.observe(state)[0].player)[:, 0]
  same(player[:, 2], 1)  # food used: two halves
  state = run(default_game, state, 14)
  same(state.kind[:, 0, S:], 0)
  state = run(default_game, state)  # 384 loops at tempo 3 are 128, 16 steps
  same((state.kind[:, 0, S:] == LOCAL["Zergling"]).sum(-1), 2)
  same(state.score.units[:, 0], 50)


def test_hatcheries_make_units_in_parallel_and_others_in_sequence(default_game):
  state = scene(default_game, ZERG, PROTOSS)
  state.minerals[:] = 1000
  order = give(give(state, "Train_Drone_quick", slots=[0], repeat=3),
               "Train_Probe_quick", slots=[0], repeat=3, player=1)
  state = run(default_game, order, 15)  # 272 loops at tempo 3 are 91: 12 steps
  same((state.kind[:, :, S:] > 0).sum(-1), [3, 1])


def test_a_hatchery_makes_queens_in_sequence_and_drones_in_parallel(default_game):
  state = scene(default_game, ZERG)
  queue = [LOCAL[name] for name in ("Queen", "Drone", "Queen", "Drone")]
  state.queue[:, 0, 0, :4] = queue
  state.timers[:, 0, 0, :4] = [20, 30, 100, 60]
  found = run(default_game, state, 2)
  same(found.timers[:, 0, 0, :4], [4, 14, 100, 44])
  # The first queen is done after 20 loops; the second starts with the step's 4 remaining loops.
  found = run(default_game, found)
  same(found.queue[:, 0, 0], [queue[1], queue[2], queue[3], 0, 0])
  same(found.timers[:, 0, 0], [6, 96, 36, 0, 0])
  # A drone neither takes time from the queen nor passes any on.
  found = run(default_game, found)
  same(found.queue[:, 0, 0], [queue[2], queue[3], 0, 0, 0])
  same(found.timers[:, 0, 0], [88, 28, 0, 0, 0])
  same(np.sort(found.kind[:, 0, S:], axis=-1)[..., -2:], [LOCAL["Drone"], LOCAL["Queen"]])


def test_a_command_center_morphs_into_an_orbital_command(default_game):
  state = scene(default_game)
  state.minerals[:] = 400
  put(state, 1, "Barracks", (-8.0, -16.0))
  state.unfinished[1, 0, 1] = 4000  # required, but unfinished
  state = run(default_game, give(state, "Morph_OrbitalCommand_quick", slots=[0], repeat=3))
  same(state.minerals[:2, 0], [250, 400])
  state = run(default_game, state, 22)  # 560 loops at tempo 3 are 187, 24 steps
  same(state.kind[:2, 0, 0], LOCAL["CommandCenter"])
  state = run(default_game, state)
  same(state.kind[:2, 0, 0], [LOCAL["OrbitalCommand"], LOCAL["CommandCenter"]])
  # 50, and what the rest of the step adds.
  close(state.energy[0, 0, 0], 50 + 8 * 0.5625 / 16)
  # Its value is both prices. It trains as before, but cannot morph again.
  assert TYPES.value[LOCAL["OrbitalCommand"]] == 550
  same(state.score.structures[:2, 0], [150, 0])
  orbital = vocabulary.UNIT_TYPES.index("OrbitalCommand")
  same(state.executed.units[:2, 0, orbital], [True, False])
  # The Barracks was there before; the morphed town hall enters the build order at its place.
  same(state.executed.build_order[0, 0], [orbital, *[0] * 19])
  same(state.executed.build_order_xy[0, 0, 0], np.floor((np.array(HOME) + 24) * 256 / 48))
  same(state.executed.build_order[1, 0], 0)
  can = host(default_game.observe(state)[0].available_actions)[0, 0]
  names = {name: can[vocabulary.FUNCTIONS.index(name)] for name in (
    "Train_SCV_quick", "Effect_Scan_pt", "Morph_OrbitalCommand_quick")}
  assert list(names.values()) == [True, True, False]
