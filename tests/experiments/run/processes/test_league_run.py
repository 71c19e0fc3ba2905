"""A league's run: configs and directories that are refused before a process starts."""

import pytest

from starleague.common import run_files
from starleague.experiments.run.config import settings
from starleague.experiments.run.processes import league_run, supervision
from starleague.league import LeagueError


def test_a_run_that_lost_its_league_file_starts_no_process(tmp_path, monkeypatch):
  started = []
  for name in ("imitate", "run_processes"):
    monkeypatch.setattr(supervision, name, lambda *arguments, name=name: started.append(name))
  config = settings.complete(settings.base())
  config.init = settings.PRETRAINED
  league_run.train(config, tmp_path, None)  # a new run
  run_files.snapshot_path(tmp_path, "terran-main-0-0000").mkdir(parents=True)  # of exploiters
  league_run.train(config, tmp_path, None)
  run_files.snapshot_path(tmp_path, "terran-main-0-0001").mkdir()
  (tmp_path / run_files.LEAGUE).touch()
  with pytest.raises(LeagueError, match="league.sqlite is empty, expected the league of an"):
    league_run.train(config, tmp_path, None)
  assert started == ["run_processes"] * 2


@pytest.mark.parametrize("changed, started", [
  ({"learner.updates": 12}, []), ({"learner.updates": 13}, ["run_processes"]),
  ({"league.main_updates": 5}, []), ({"league.main_updates": 6}, ["run_processes"]),
  ({}, ["run_processes"])])
def test_a_league_that_has_its_updates_starts_no_process(changed, started, tmp_path, monkeypatch):
  """Two players have 5 + 7 updates; before, each repeated command trained one more."""
  found = []
  monkeypatch.setattr(
    supervision, "run_processes", lambda *arguments: found.append("run_processes"))
  config = settings.complete(
    {}, {"init": "pretrained", "league.composition": "terran:1:0:1", **changed})
  for player, step in (("terran-main-0", 5), ("terran-league_exploiter-0", 7)):
    (run_files.learner_dir(tmp_path, player) / run_files.CHECKPOINTS / f"{step:012d}").mkdir(
      parents=True)
  (tmp_path / run_files.LEAGUE).write_text("a league")
  league_run.train(config, tmp_path, None)
  assert found == started


def test_the_default_config_is_one_of_a_league():
  league_run.check(settings.complete({}))


@pytest.mark.parametrize("changed, message", [
  ({"init": "random"}, "'init' must be 'imitation' or 'pretrained' in a league, found 'random'"),
  ({"init": "pretrained"}, "'actor.library' must name a library of z in a league"),
  ({"league.composition": "terran:0:0:0:1"}, "has no player that learns"),
  ({"league.composition": "zerg:1:0:0"},
   "has zerg; expected some of terran, the races of 'environment.tier'"),
  ({"league.main_updates": 5, "league.composition": "terran:0:0:2:1"},
   "must have a main agent that learns if 'league.main_updates' is above 0"),
  ({"league.main_updates": 5, "cluster.learners": "each"},
   "'cluster.learners' must be 'one' if 'league.main_updates' is above 0, found 'each'"),
  ({"learner.updates": 5, "cluster.learners": "each"},
   "'cluster.learners' must be 'one' in a league if 'learner.updates' is above 0, found 'each'"),
  ({"league.scripted": "rusher,L8"},
   r"'league.scripted' must name some of 'environment.opponents' \(passive, .*found 'rusher,L8'"),
  ({"league.scripted": "rusher,rusher"}, "'league.scripted' must .* each once; found"),
  ({"league.chunk": 7}, r"'league.chunk' must divide 'actor.inference_batch' \(64\), found 7"),
  ({"learner.stages": 2}, "'learner.stages' must be 1 in a league, found 2"),
  ({"cluster.learner_hosts": 2}, "'cluster.learner_hosts' must be 1 in a league, found 2")])
def test_another_config_is_refused(changed, message):
  with pytest.raises(settings.SettingsError, match=message):
    league_run.check(settings.complete({}, changed))


def test_chunks_need_not_divide_batches_of_games_in_processes():
  league_run.check(settings.complete({}, {
    "environment.name": "sc2", "init": "pretrained", "actor.library": "z.npz", "league.chunk": 7}))
