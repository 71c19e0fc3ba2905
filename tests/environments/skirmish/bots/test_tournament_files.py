"""Files of tournaments: contents, resumption, and other games."""

import re

import numpy as np
import pytest

from starleague.agent import types
from starleague.common.errors import UserError
from starleague.environments.skirmish.bots import tournament, tournament_files

RACES = [(types.RACES.index("terran"), types.RACES.index("zerg"))]
FIXTURES = tournament.round_robin(2, RACES, [0, 2], 1)
OUTCOMES = tournament.Outcomes(
  np.array([0, 1, 2, -1], np.int32), np.array([3912, 8, 12000, 0], np.int32),
  np.array([[[7, 7, 9, 0, 0, 0], [1, 2, 3, 4, 5, 6]], *np.zeros((3, 2, 6))], np.int32))
NOTHING = 12 * ",0"
SOURCES = tournament_files.sources()


@pytest.fixture
def file(tmp_path):
  return tournament_files.Tournament(
    tmp_path / "games.csv", "default", 5, ("rush", "air"), FIXTURES)


def test_without_a_file_no_game_has_begun(file):
  np.testing.assert_array_equal(file.load().winner, [-1] * 4)
  np.testing.assert_array_equal(file.load().loops, [0] * 4)


def test_saved_outcomes_are_loaded(file, tmp_path):
  file.save(OUTCOMES)
  assert (tmp_path / "games.csv").read_text().splitlines() == [
    "sources,tier,seed,player,opponent,race,opponent_race,map,swap_sides,winner,loops,"
    "opening_1,opening_2,opening_3,opening_4,opening_5,opening_6,"
    "opponent_opening_1,opponent_opening_2,opponent_opening_3,opponent_opening_4,"
    "opponent_opening_5,opponent_opening_6",
    f"{SOURCES},default,5,rush,air,terran,zerg,open,0,0,3912,7,7,9,0,0,0,1,2,3,4,5,6",
    f"{SOURCES},default,5,rush,air,terran,zerg,open,1,1,8{NOTHING}",
    f"{SOURCES},default,5,rush,air,terran,zerg,river,0,2,12000{NOTHING}",
    f"{SOURCES},default,5,rush,air,terran,zerg,river,1,-1,0{NOTHING}"]
  found = file.load()
  for one, other in zip(found, OUTCOMES, strict=True):
    np.testing.assert_array_equal(one, other)
    assert one.dtype == other.dtype


@pytest.mark.parametrize(("before", "after", "message"), [
  ("rush,air", "rush,macro", "line 2: expected .*,default,5,rush,air,.* found .*,rush,macro,"),
  ("tier,seed", "tier,sed", "line 1: expected sources,tier,seed,player,.* found sources,tier,sed,"),
  (f"{SOURCES},default,5,rush,air,terran,zerg,river,1,-1,0{NOTHING}\n", "",
   "expected 4 games, found 3;"),
  ("12000", "long", "expected a winner from -1 to 2, a length and openings"),
  (",7,7,9", ",7,-7,9", "expected a winner from -1 to 2, a length and openings"),
  (",2,12000", ",3,12000", "expected a winner from -1 to 2, a length and openings"),
  (",2,12000", ",2", "expected a winner from -1 to 2, a length and openings"),
  (",2,12000", ",2,99999999999999999999", "expected a winner from -1 to 2, a length and openings"),
  ("river", "\0", "line 4: expected .*river.* found .*"),
  ("river", '"' + "x" * 2 ** 17, "expected the games of a tournament, found field larger than"),
])
def test_other_files_are_refused_in_one_line(file, tmp_path, before, after, message):
  file.save(OUTCOMES)
  path = tmp_path / "games.csv"
  path.write_text(path.read_text().replace(before, after))
  with pytest.raises(UserError, match=f"^{re.escape(str(path))}: {message}") as error:
    file.load()
  assert "\n" not in str(error.value)


def test_games_of_other_sources_are_refused(file, tmp_path, monkeypatch):
  file.save(OUTCOMES)
  monkeypatch.setattr(tournament_files, "sources", lambda: "01234567")
  changed = tournament_files.Tournament(
    tmp_path / "games.csv", "default", 5, ("rush", "air"), FIXTURES)
  with pytest.raises(UserError, match=f"expected 01234567,default,5,.* found {SOURCES},default"):
    changed.load()


@pytest.mark.parametrize("data", [b"", bytes(range(256))])
def test_binary_files_are_refused(file, tmp_path, data):
  (tmp_path / "games.csv").write_bytes(data)
  with pytest.raises(UserError, match="line 1: expected sources,tier,seed"):
    file.load()
