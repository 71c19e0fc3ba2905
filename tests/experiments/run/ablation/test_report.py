"""Figures and files of an ablation with known results."""

import json
import math

import numpy as np
import pytest

from starleague.actor.evaluation import Counts
from starleague.experiments.run.ablation import behaviours, report
from starleague.experiments.run.evaluation import estimates
from tests.experiments.run import ablations
from tests.viewers.pages import check_self_contained, plots_of

KINDS = ["noise", "plain", "z", "z, z shown"]


@pytest.fixture
def played(tmp_path):
  runs = ablations.make_runs(tmp_path)
  ablations.write_results(runs)
  return runs, ablations.games_of(runs)


def test_figures_are_those_of_the_games(played):
  found = {measure.title: measure.values
           for measure in report.measures(ablations.ABLATION, *played)}
  assert found["score against rusher, %"] == {
    "noise": (20.0, 20.0), "plain": (50.0, 50.0), "z": (80.0, 80.0), "z, z shown": (80.0, 80.0)}
  entropy = found["entropy of the first 2 units and buildings, bits"]
  assert entropy["plain"] == pytest.approx((1.3, 1.5))
  ratings = [np.mean(found["Elo rating, rusher = 0"][kind]) for kind in KINDS]
  assert ratings[0] < 0 < ratings[1] < ratings[2]
  assert found["minutes of training to a score of 50%"] == {
    "noise": (math.inf, math.inf), "plain": (2.0, math.inf), "z": (2.0, 2.0)}
  # 25 updates of 16 sequences of 4 steps.
  assert found["thousand steps learnt to a score of 50%"]["z"] == (1.6, 1.6)


def test_the_lowest_of_more_than_two_scores(played):
  runs, games = played
  opponents = (*ablations.ABLATION.opponents, "passive")
  games = games._replace(played={**games.played, **{
    (entrant.name, "passive"): Counts(1, 2, 7) for entrant in games.entrants}})
  found = {measure.title: measure.values for measure in report.measures(
    ablations.ABLATION._replace(opponents=opponents), runs, games)}
  lowest = found["lowest of these scores, %"]
  assert lowest["noise"] == lowest["plain"] == lowest["z"] == (20.0, 20.0)
  fewer = report.measures(ablations.ABLATION, *played)
  assert "lowest of these scores, %" not in {measure.title for measure in fewer}


def test_varied_leagues_have_the_measures_of_all_main_agents(played):
  runs, games = played
  names = [entrant.name for entrant in games.entrants]
  cycle = {("a", "b"): Counts(4, 0, 0), ("b", "c"): Counts(4, 0, 0), ("a", "c"): Counts(0, 0, 4)}
  weak, strong = ({("e", agent): Counts(wins, 0, 4 - wins) for agent in "abc"} for wins in (1, 3))
  games = games._replace(
    variety={name: behaviours.Variety(0.125, 12.5) for name in names},
    mixtures=dict.fromkeys(names, (cycle | weak, cycle | strong)))
  found = {measure.title: measure.values
           for measure in report.measures(ablations.ABLATION, runs, games)}
  assert found["coverage of the main agents' behaviours, %"]["z"] == (12.5, 12.5)
  assert found["QD score of the main agents"]["noise"] == (12.5, 12.5)
  # The better of both starts of the exploiters.
  assert found["exploitability of the main agents' Nash mixture, %"]["plain"] == pytest.approx(
    (75.0, 75.0))
  assert not {title for title in found if "main agents" in title} & {
    measure.title for measure in report.measures(ablations.ABLATION, *played)}


def test_robustness_is_that_of_the_worst_opponent(played):
  runs, games = played
  names = [entrant.name for entrant in games.entrants]
  games = games._replace(
    past={name: (Counts(8, 2, 0), Counts(3, 2, 5)) for name in names},
    exploited={name: (Counts(1, 0, 9), Counts(6, 1, 3)) for name in names})
  found = {measure.title: measure.values
           for measure in report.measures(ablations.ABLATION, runs, games)}
  assert found["minimum score against past selves, %"]["z"] == pytest.approx((40.0, 40.0))
  assert found["exploitability: best score of fresh exploiters, %"]["plain"] == pytest.approx(
    (65.0, 65.0))


def test_the_arms_of_a_seed_have_equally_many_past_selves(played):
  runs, games = played
  few, many = (Counts(5, 0, 5), Counts(4, 0, 6)), (
    Counts(6, 0, 4), Counts(1, 0, 9), Counts(7, 0, 3))
  games = games._replace(past={
    entrant.name: few if entrant.name == "noise, seed 3" else many for entrant in games.entrants})
  found = {measure.title: measure.values
           for measure in report.measures(ablations.ABLATION, runs, games)}
  lowest = found["minimum score against past selves, %"]
  assert lowest["noise"] == pytest.approx((40.0, 10.0))
  assert lowest["plain"] == pytest.approx((60.0, 10.0))  # of the first and the last, with seed 3


def test_a_league_has_no_time_to_a_score_against_scripted_players(played):
  titles = [[measure.title for measure in report.measures(
    ablations.ABLATION._replace(league=league), *played)] for league in (False, True)]
  assert titles[1] == titles[0][:-2]


def test_the_table_tells_what_was_not_reached(played, tmp_path):
  lines = report.write(ablations.ABLATION, *played, tmp_path)
  rows = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ") for line in lines
          if line.startswith("| ")}
  assert rows["random"][-2:] == ["not reached", "not reached"]
  assert rows["imitation"][-2:] == ["reached by 1 of 2", "reached by 1 of 2"]
  assert rows["imitation and z"][2] == "80 (80 to 80)"
  assert rows["imitation and z"][-1] == "2 (2 to 2)"
  assert len({line.count("|") for line in lines[2:8]}) == 1


def test_steps_are_tested_over_the_seeds(played):
  runs, games = played
  found = report.measures(ablations.ABLATION, runs, games)
  rows = {(title, kind): rest for title, kind, _, *rest in report.steps(found, KINDS)}
  entropy = "entropy of the first 2 units and buildings, bits"
  expected = estimates.difference((1.3, 1.5), (0.3, 0.5))
  assert rows[entropy, "plain"] == pytest.approx(list(expected))
  assert rows["score against rusher, %", "plain"] == [30.0, 30.0, 30.0, 0.0]
  assert ("minutes of training to a score of 50%", "plain") not in rows


def test_all_files_are_written(played, tmp_path):
  report.write(ablations.ABLATION, *played, tmp_path)
  document = json.loads((tmp_path / "ablation.json").read_text())
  assert document["seeds"] == [3, 5] and document["updates"] == 40
  minutes = document["measures"][-2]
  assert minutes["values"]["plain"] == [2.0, None]
  assert document["arms"]["z"]["overrides"] == {"learner.learning_rate": 1e-4}
  assert document["config"]["unroll_length"] == 4
  page = (tmp_path / "ablation.html").read_text()
  check_self_contained(page)
  assert "<h1>Half &amp; half</h1>" in page
  assert len(plots_of(page)) == 6
  picture = (tmp_path / "ablation.svg").read_text()
  assert picture.startswith("<svg") and "reached by 1 of 2" in picture
  assert "40 updates" in (tmp_path / "ablation.md").read_text()
