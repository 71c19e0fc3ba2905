"""Openings of players: names, shares of the latest games, rows of their results files."""

import numpy as np
import pytest

from starleague.actor.loops import openings
from starleague.agent import vocabulary
from starleague.common import results


def order(*names):
  built = np.zeros(20, np.uint8)
  built[:len(names)] = [vocabulary.UNIT_TYPES.index(name) for name in names]
  return built


BARRACKS = order("Barracks", "Marine", "Marine", "Refinery")


@pytest.mark.parametrize("built, name", [
  (BARRACKS, "Barracks Marine Marine"), (order("Barracks"), "Barracks"),
  (order(), "nothing built")])
def test_names(built, name):
  assert openings.name_of(built) == name


def test_shares_are_those_of_the_latest_games(tmp_path):
  found = openings.Openings(tmp_path, 0.0, "0")
  found.add(np.stack([order()] * 40 + [BARRACKS] * 75 + [order("Refinery")] * 25))
  assert found.shares() == {"Barracks Marine Marine": 0.75, "Refinery": 0.25}


def test_rare_openings_are_others(tmp_path):
  found = openings.Openings(tmp_path, 0.0, "0")
  rare = [np.full(20, index, np.uint8) for index in range(1, 9)]
  found.add(np.stack([each for each in rare[:6] for _ in range(2)] + rare[6:]))
  shares = found.shares()
  assert len(shares) == 7 and shares["others"] == pytest.approx(2 / 14)
  assert sum(shares.values()) == pytest.approx(1.0)


def test_rows_are_written_from_time_to_time_and_vanished_openings_are_zero(tmp_path):
  now = [1000.0]
  found = openings.Openings(tmp_path / "main", 900.0, "3", clock=lambda: now[0])
  found.add(np.stack([BARRACKS]))
  assert not (tmp_path / "main").exists()  # too early
  now[0] = 1031.0
  found.add(np.zeros((0, 20), np.uint8))
  now[0] = 1062.0
  found.add(np.stack([order("Refinery")] * 100))
  rows = results.read(tmp_path / "main" / results.FILE_NAME)
  assert [(row.seconds, row.tag, row.value) for row in rows] == [
    (131.0, "opening/3/Barracks Marine Marine", 1.0),
    (162.0, "opening/3/Barracks Marine Marine", 0.0), (162.0, "opening/3/Refinery", 1.0)]
