"""The contents of the page."""

import numpy as np

from starleague.common.results import Row
from starleague.viewers.league import sections


def test_key_figures(facts):
  found = {tile.name: (tile.value, tile.remark) for tile in sections.key_figures(facts)}
  assert found["players"] == ("45", "12 of them learn")
  assert found["snapshots"] == ("33", f"{len(facts.resets)} resets")
  assert found["agent steps learnt"][0] == "2.28 T"  # 12 learners with 190e9 steps
  assert found["games"] == ("3.00 M", "0 matches in play") and found["time"][0] == "44d00h"
  rate = sum(tags["speed/actor"][-1].value for tags in facts.curves.values())
  assert found["played per second"][0] == f"{rate / 1e3:.0f} k"
  assert not found.keys() & {"actors", "deaths and restarts"}
  curves = {**facts.curves, facts.name: {"actor/0": facts.curves[facts.learners[0].name][
    "speed/actor"][-1:]}}
  live = {tile.name: tile.value for tile in sections.key_figures(facts._replace(curves=curves))}
  assert live["actors"] == "1"
  died = {"deaths/actor_10": [Row(1.0, 0, "", 1.0), Row(9.0, 0, "", 3.0)],
          "deaths/learner": [Row(2.0, 0, "", 1.0)]}
  found = {tile.name: (tile.value, tile.remark)
           for tile in sections.key_figures(facts._replace(curves={facts.name: died}))}
  assert found["deaths and restarts"] == ("4", "actor 10: 3, learner: 1")


def test_sections_in_order(facts):
  found = sections.sections(facts)
  assert [section.name for section in found] == [
    "matrix", "ratings", "family", "learners", "matchmaking", "learning", "throughput", "openings",
    "archive"]
  assert "with 3 games in it" in found[-1].note and "200 cells" in found[-1].note
  assert [panel.sortable for section in found for panel in section.panels].count(True) == 1
  assert "protoss-main-0-0000 has rating 0" in found[1].note
  titles = [panel.title for panel in found[5].panels]
  assert titles[0] == "Loss" and titles[-1] == "Agent steps learnt" and len(titles) == 4
  assert len(found[5].panels[0].figure["data"]) >= 12


def test_what_is_not_recorded_is_left_out(facts):
  found = sections.sections(facts._replace(branches=[], curves={}, behaviours=[]))
  assert [section.name for section in found] == ["matrix", "ratings", "family", "learners"]
  tiles = sections.key_figures(facts._replace(branches=[], curves={}))
  assert [tile.name for tile in tiles] == ["players", "snapshots", "agent steps learnt"]


def test_table_of_learners(facts):
  table = sections.sections(facts._replace(paused=frozenset({"protoss-main-0"})))[3].table
  assert len(table.rows) == 12
  name, *others, rating = table.rows[0]
  assert name == "protoss-main-0"
  assert others == ["main agent", "protoss", "paused", "190 G", "4", "0"]
  assert [row[3] for row in table.rows[1:]] == [""] * 11
  index = [player.name for player in facts.players].index(name)
  value, low, high = (round(float(part[index])) for part in facts.ratings)
  assert rating == f"{value} ({low} to {high})"


def test_a_learner_without_games_has_no_rating(facts):
  table = sections.sections(facts._replace(
    games=np.zeros_like(facts.games), points=np.zeros_like(facts.points)))[3].table
  assert {row[-1] for row in table.rows} == {"no games"}


def test_hyperparameters_and_copies_of_a_population(facts):
  first, second = facts.learners[0].name, facts.learners[1].name
  rows = [Row(time, update, "population/learning_rate", value)
          for time, update, value in ((0.0, 0, 1e-3), (90.0, 7, 1e-3), (90.0, 7, 2.4e-3))]
  curves = {first: {"population/learning_rate": rows,
                    f"copied/{second}": [Row(90.0, 7, f"copied/{second}", 0.25)]},
            second: {"population/learning_rate": rows[:1], "population/entropy": rows[:1]}}
  found = sections.sections(facts._replace(curves=curves, behaviours=[]))[-1]
  assert found.name == "population"
  assert [panel.title for panel in found.panels] == ["entropy", "learning rate"]
  assert found.panels[1].figure["data"][0]["y"] == [1e-3, 1e-3, 2.4e-3]
  assert list(found.key) == [first, second]
  assert found.table.header == ("player", "copied", "time", "update", "lead")
  assert found.table.rows == [[first, second, "1m30s", "7", "25%"]]
  without = {first: {"population/learning_rate": rows}}
  assert sections.sections(facts._replace(curves=without, behaviours=[]))[-1].table is None


def test_games_newest_first(facts):
  saved, waiting = facts.replays[0], facts.replays[1]._replace(path=None, result=-1)
  section = sections.games([saved, waiting])
  assert section.table.replays == [None, saved.id]
  assert section.table.rows[0] == [waiting.home, waiting.away, "won by away", "longest"]
  assert section.table.rows[1][2:] == ["won by home", "upset"]
  assert sections.games([]).table is None and "No replay" in sections.games([]).note
