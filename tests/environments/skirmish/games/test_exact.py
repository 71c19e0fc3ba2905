"""The compiled program of reproducible games, and recorded games that hold the rules.

The files in `recorded/` are replays of the current rules. After a deliberate change of the rules or
of the scripts, record them again: `mini` is the fixture `replay`; `default` is L7 (Protoss) against
macro (Zerg) on the map `ramps`, seed 3, at most 500 steps.
"""

import pathlib

import pytest

from starleague.environments.skirmish.games import exact, replays
from tests.environments.skirmish.games.trees import assert_equal

RECORDED = pathlib.Path(__file__).parent / "recorded"


def load_recorded(tier):
  """Returns the recorded replay of a tier, if this platform rounds as the recording one."""
  found = replays.load(RECORDED / f"{tier}.npz")
  assert exact.rules_digest(tier) == found.rules
  if found.recorded_with != exact.recorded_with():
    pytest.skip(f"recorded with {found.recorded_with}, whose rounding may differ")
  return found


def test_scripts_play_the_recorded_game_of_mini(replay):
  """Rules and scripts of `mini` have not changed: actions and hashes are equal."""
  assert_equal(load_recorded("mini"), replay)


@pytest.mark.slow
def test_the_recorded_game_of_default_resimulates():
  """The rules of `default` have not changed."""
  replays.resimulate(load_recorded("default"))


def test_recording_and_resimulation_share_one_compiled_program():
  pair = (replays.scripted_player("rusher"), replays.scripted_player("builder"))
  short = replays.record(pair, seed=4, max_steps=20)
  replays.resimulate(short)
  assert exact.make_program(short.game).run._cache_size() == 1
