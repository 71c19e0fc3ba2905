"""Which units Guardian Shields cover, and how Force Fields stop units."""

import numpy as np
import pytest

from starleague.environments.skirmish.rules.state import sentries
from starleague.environments.skirmish.rules.step import movement
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import LOCAL, RULES, S, place, with_sentry

FIRST, SECOND = tech.FREE, tech.FREE + 1


def test_four_sentries_of_a_player_shield():
  state = with_sentry()
  for i in range(5):
    place(state, 0, FIRST + i, "Sentry", 10.0 * i, 0.0)
    state.spell_loops[0, FIRST + i - S] = 100
  found = np.array(sentries.shielded(RULES, states.on_device(state)))
  assert np.flatnonzero(found[0] & (state.kind[0] == LOCAL["Sentry"])).tolist() == [
    FIRST + i for i in range(4)]
  assert not found[1].any()


def moved(state, slot=SECOND, dx=0.0, dy=0.0):
  """The place of a unit of player 0 after a movement."""
  device, s = states.on_device(state), S
  steps = [np.zeros((2, RULES.tier.units), np.float32) for _ in range(2)]
  steps[0][0, slot - s], steps[1][0, slot - s] = dx, dy
  x, y = movement.move(
    RULES, device, device.x[:, s:], device.y[:, s:], *steps, sentries.barriers(RULES, device))
  return float(x[0, slot - s]), float(y[0, slot - s])


@pytest.mark.parametrize("name, x", [
  ("Zealot", -2.2), ("Reaper", -2.075), ("Observer", -1.5), ("SiegeTankSieged", -2.4)])
def test_a_force_field_stops_walkers_and_not_flyers(name, x):
  """Its radius is 1.7, and those of a Zealot and a Reaper 0.5 and 0.375."""
  state = with_sentry(at=(9.0, 0.0))
  place(state, 0, SECOND, name, -2.5, 0.0)
  state = tech.play(tech.order(state, "Effect_ForceField_pt", [FIRST], place=(0.0, 0.0)))
  assert state.refused[0] == 0 and state.field_loops.tolist() == [[240, 0, 0, 0], [0] * 4]
  step = 0.1 if name == "SiegeTankSieged" else 1.0
  assert moved(state, dx=step) == pytest.approx((x, 0.0), abs=2e-3)
  state.field_loops[:] = 0
  assert moved(state, dx=step) == pytest.approx((-2.5 + step, 0.0), abs=1e-6)


def test_a_force_field_pushes_out_those_inside_and_of_both_sides():
  state = with_sentry()
  state.field_x[1, 2], state.field_y[1, 2], state.field_loops[1, 2] = 1.0, 0.0, 8
  place(state, 0, SECOND, "Zealot", 1.0, -0.4)
  assert moved(state) == pytest.approx((1.0, -2.2), abs=0.02)
  place(state, 0, SECOND, "Zealot", 1.0, 0.0)
  x, y = moved(state)  # at its very middle
  assert np.hypot(x - 1.0, y) == pytest.approx(2.2, abs=0.01)
  place(state, 0, SECOND, "SiegeTankSieged", 1.0, -0.4)
  assert moved(state) == pytest.approx((1.0, -0.4))
