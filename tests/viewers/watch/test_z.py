"""The z of a recorded game, and when it was fulfilled."""

import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.viewers.watch import page as watch_page
from starleague.viewers.watch import z as watch_z
from tests.viewers.pages import data_of

TYPE = {name: vocabulary.UNIT_TYPES.index(name) for name in ("Barracks", "Armory", "Marine")}


@pytest.fixture(scope="module")
def conditioned(replay):
  """The game, as if player 2 had played for two Barracks, an Armory, Marines and an effect."""
  z = types.Statistics(*(np.array(values) for values in replay.match_up.z))
  z.build_order[1, :3] = TYPE["Barracks"], TYPE["Armory"], TYPE["Barracks"]
  z.units[1, [TYPE["Marine"], TYPE["Armory"]]] = True
  z.effects[1, 3] = True
  return replay._replace(match_up=replay.match_up._replace(z=z))


def test_entries_are_fulfilled_at_the_step_of_their_type(conditioned, states):
  nothing, found = watch_z.z_entries(conditioned, states)
  assert nothing == {} and list(found) == ["build order", "units", "effects"]
  order = states.executed.build_order[:, 1]
  barracks = np.sum(order == TYPE["Barracks"], axis=1)
  assert barracks[-1] == 1  # of two that z has
  first = int(np.argmax(barracks > 0))
  assert found["build order"] == [("Barracks", first), ("Armory", -1), ("Barracks", -1)]
  assert barracks[first] == 1 and barracks[first - 1] == 0
  units = dict(found["units"])
  assert units["Armory"] == -1
  made = states.executed.units[:, 1, TYPE["Marine"]]
  assert units["Marine"] == (int(np.argmax(made)) if made.any() else -1)
  effect = vocabulary.FUNCTIONS.names[vocabulary.EFFECT_FUNCTIONS[3]]
  assert effect == "Effect_PsiStorm_pt" and found["effects"] == [("Psi Storm", -1)]


def test_the_page_holds_z(conditioned, replay, states):
  game = data_of(watch_page.render_page(conditioned, states), "game")
  assert [name for name, _ in game["z"][1]["build order"]] == ["Barracks", "Armory", "Barracks"]
  assert data_of(watch_page.render_page(replay, states), "game")["z"] == [{}, {}]
