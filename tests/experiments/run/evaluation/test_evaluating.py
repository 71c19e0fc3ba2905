import numpy as np
import pytest

from starleague.actor import rollouts
from starleague.actor.evaluation import Counts
from starleague.actor.parts import CompiledGames, Parts
from starleague.common import results, run_files
from starleague.common.errors import UserError
from starleague.experiments.run.config import settings
from starleague.experiments.run.evaluation import evaluating

COUNTS = Counts(wins=4, draws=4, losses=2)
WON = {"rusher": Counts(1, 0, 0)}


def test_a_score_counts_draws_half_and_a_win_rate_wins_only():
  assert evaluating.score_of(COUNTS).value == 0.6
  assert evaluating.win_rate_of(COUNTS).value == 0.4


def test_intervals_are_95_percent_wilson_intervals():
  """For 10 games, (10 p + z^2 / 2 +- z sqrt(10 p (1 - p) + z^2 / 4)) / (10 + z^2), z = 1.96."""
  for measure, bounds in ((evaluating.score_of, (0.31267, 0.83182)),
                          (evaluating.win_rate_of, (0.16818, 0.68733))):
    assert measure(COUNTS)[1:] == pytest.approx(bounds, rel=1e-4)


def test_both_are_stored_under_their_own_names(tmp_path):
  rows = evaluating.result_rows({"rusher": COUNTS}, "eval", 10.0, 7)
  results.append(tmp_path / "results.csv", rows)
  found = {row.tag: row.value for row in results.read(tmp_path / "results.csv")}
  assert found == {"score/eval/rusher": 0.6, "win_rate/eval/rusher": 0.4}


def test_both_are_printed_under_their_own_names():
  line = evaluating.result_line(COUNTS, "eval", 7, "rusher")
  fields = dict(field.split("=") for field in line.split(" "))
  assert (fields["wins"], fields["draws"], fields["losses"]) == ("4", "4", "2")
  assert (fields["score"], fields["win_rate"]) == ("0.600", "0.400")
  assert fields["score_interval"] != fields["win_rate_interval"]


def test_games_between_agents_need_the_compiled_program():
  evaluating.require_matches(settings.complete({}))
  config = settings.complete({}, {"environment.name": "sc2", "init": "random"})
  with pytest.raises(settings.SettingsError, match="'environment.name': expected .* found 'sc2'"):
    evaluating.require_matches(config)


def test_an_opponent_that_the_run_does_not_have_raises():
  assert evaluating.opponent_indices(["b"], ["a", "b"]) == [1]
  with pytest.raises(settings.SettingsError, match="--opponents names 'c'; expected some of a, b"):
    evaluating.opponent_indices(["c"], ["a", "b"])
  with pytest.raises(settings.SettingsError, match="^--opponents names 'b' more than once.$"):
    evaluating.opponent_indices(["b", "a", "b"], ["a", "b"])


def skirmish_parts(races):
  """Parts of a run whose games have these races."""
  return Parts(
    config=None, policy=None, opponents=("rusher",), races=races, opponent_races=races,
    maps=(("open",),), mmr=7000, compiled=CompiledGames(None, None, 1.0))


def test_races_are_those_of_the_runs_games():
  parts = skirmish_parts(races=(1, 2, 3))
  assert evaluating.race_indices(["random", "random"], parts) == (-1, -1)
  assert evaluating.race_indices(["zerg", "random"], parts) == (2, -1)
  assert evaluating.race_indices(["random", "protoss"], parts) == (-1, 3)
  bots = parts._replace(compiled=None)  # a bot's name states its race
  assert evaluating.race_indices(["zerg", "random"], bots) == (2, -1)


@pytest.mark.parametrize("names, compiled", [
  (["zerg", "random"], True), (["random", "zerg"], True), (["random"], True), ([""], True),
  (["terran", "random", "random"], True), (["terran", "terran"], False)])
def test_an_evaluation_without_games_of_a_race_is_one_line(names, compiled):
  parts = skirmish_parts(races=(1,))
  parts = parts if compiled else parts._replace(compiled=None)
  others = "random or terran" if compiled else "random"
  with pytest.raises(settings.SettingsError, match=(
      f"^--races: expected random or terran, then {others}, which the run's games have; found "
      f"'{','.join(names)}'.$")):
    evaluating.race_indices(names, parts)


def played(races=((1, 1),)):
  """Returns won games against the first opponent, one in each match-up."""
  games = len(races)
  return rollouts.Results(
    over=np.ones(games, bool), opponent=np.ones(games, int),
    reward=np.tile([1.0, -1.0], (games, 1)), executed=(), z=(),
    race=np.array(races), side=np.zeros((games, 2), int), map_index=np.zeros(games, int))


@pytest.fixture
def run_dir(tmp_path, monkeypatch):
  """A run that has all its weights; a folder's weights are its path in the run."""
  for name in (run_files.INITIAL, run_files.IMITATED, f"{run_files.CHECKPOINTS}/{0:012d}"):
    (tmp_path / name).mkdir(parents=True)
  monkeypatch.setattr(evaluating.saved_agents.checkpoints, "load_params_and_step",
                      lambda path, config: (str(path.relative_to(tmp_path)), 7))
  return tmp_path


def test_results_with_races_have_a_kind_of_their_own(run_dir):
  asked = []

  def make_evaluation(parts, opponents, games, seed, races):
    asked.append(races)
    return lambda params, report: played()

  parts = skirmish_parts(races=(1, 2, 3))
  for races, kinds in (((-1, -1), ["initial", "eval"]),
                       ((2, -1), ["initial_zerg_random", "eval_zerg_random"])):
    found = evaluating.evaluate_run(make_evaluation, parts, run_dir, [0], 2, 0, races)
    assert [one.kind for one in found] == kinds and asked[-1] == races


@pytest.mark.parametrize("races, games, expected", [
  ((-1, -1), [(2, 1), (1, 3), (2, 1)],
   [("eval", 3), ("eval_terran_protoss", 1), ("eval_zerg_terran", 2)]),
  ((2, -1), [(2, 1), (2, 3)],
   [("eval_zerg_random", 2), ("eval_zerg_terran", 1), ("eval_zerg_protoss", 1)]),
  ((2, 1), [(2, 1), (2, 1)], [("eval_zerg_terran", 2)])])
def test_the_results_of_each_match_up_follow(run_dir, races, games, expected):
  found = evaluating.evaluate_run(
    lambda *args: lambda params, report: played(games), skirmish_parts(races=(1, 2, 3)), run_dir,
    [0], 2, 0, races, ["trained"], each_match_up=True)
  assert [(one.kind, one.counts["rusher"].wins) for one in found] == expected


def test_an_imitator_plays_alone(run_dir):
  players = []

  def make_evaluation(parts, opponents, games, seed, races):
    return lambda params, report: players.append(params) or played()

  found = list(evaluating.evaluate_run(
    make_evaluation, skirmish_parts(races=(1,)), run_dir, [0], 2, 0,
    agents=["imitation"]))
  assert [one.kind for one in found] == ["imitation"] and players == [run_files.IMITATED]
  assert found[0].counts == WON


@pytest.mark.parametrize("races, zerg, kinds", [
  ((-1, -1), (2, -1), ["zerg-main-0", "initial", "terran-main_exploiter-1"]),
  ((-1, 3), (2, 3), ["zerg-main-0_zerg_protoss", "initial_random_protoss",
                     "terran-main_exploiter-1_terran_protoss"]),
  ((1, -1), (1, -1), ["zerg-main-0_terran_random", "initial_terran_random",
                      "terran-main_exploiter-1_terran_random"])])
def test_players_of_a_league_have_their_races(run_dir, races, zerg, kinds):
  agents = ["zerg-main-0", "initial", "terran-main_exploiter-1"]
  for name in (agents[0], agents[2]):
    (run_files.learner_dir(run_dir, name) / run_files.CHECKPOINTS / f"{7:012d}").mkdir(parents=True)
  made, players = [], []

  def make_evaluation(parts, opponents, games, seed, races):
    made.append(races)
    return lambda params, report: players.append((params, races)) or played()

  found = list(evaluating.evaluate_run(
    make_evaluation, skirmish_parts(races=(1, 2, 3)), run_dir, [0], 2, 0, races, agents))
  assert [one.kind for one in found] == kinds and [one.update for one in found] == [7, 0, 7]
  terran = (1, zerg[1])
  assert players == [("learners/zerg-main-0/checkpoints", zerg), ("initial", races),
                     ("learners/terran-main_exploiter-1/checkpoints", terran)]
  assert made == list(dict.fromkeys([zerg, races, terran]))  # one program for the same races


def test_weights_that_a_run_does_not_have_are_refused_before_any_game(run_dir):
  with pytest.raises(UserError, match="has no weights 'zerg-main-0': expected them in"):
    next(evaluating.evaluate_run(
      lambda *args: pytest.fail("no game is made"), skirmish_parts(races=(1,)), run_dir, [0], 2, 0,
      agents=["initial", "zerg-main-0"]))
