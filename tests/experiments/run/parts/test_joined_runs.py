"""The config of a run, also on a node without the run's directory."""

import pytest

from starleague import league
from starleague.common import run_files
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import joined_runs
from starleague.league.run_copy import RunCopy


def test_a_node_without_the_directory_copies_config_and_library(tmp_path):
  head, node = tmp_path / "head", tmp_path / "node"
  settings.save(settings.complete({"seed": 7}), head)
  (head / run_files.LIBRARY).write_bytes(b"z")
  coordinator = league.Coordinator(head / run_files.LEAGUE, league.initial_players(["terran"]))
  client = league.LeagueClient(league.Service(coordinator), "actor")
  assert joined_runs.load_config(RunCopy(node, client)) == settings.load(head)
  assert settings.load(node).seed == 7
  assert (node / run_files.LIBRARY).read_bytes() == b"z"
  settings.save(settings.complete({"seed": 8}), head)  # the run was started again
  assert joined_runs.load_config(RunCopy(node, client)).seed == 8
  coordinator.close()


def test_a_run_without_a_league_reads_its_directory(tmp_path):
  with pytest.raises(settings.SettingsError, match="config.json"):
    joined_runs.load_config(RunCopy(tmp_path))
  settings.save(settings.complete({"seed": 9}), tmp_path)
  assert joined_runs.load_config(RunCopy(tmp_path)).seed == 9
