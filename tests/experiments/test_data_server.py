"""The tables of a data server, also on a node without the run's directory."""

import pytest

from starleague import league
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.experiments import data_server
from starleague.experiments.run.config import settings
from starleague.league import server
from tests.experiments.launch import refusal


@pytest.fixture
def tables(monkeypatch):
  """The players and the agent of each server, which ends before it serves."""
  made = []

  def serve(tables, port):
    raise UserError(f"no server at {port}")

  monkeypatch.setattr(data_server, "make_tables",
                      lambda players, agent, *_, **__: made.append((players, agent.core_size)))
  monkeypatch.setattr(data_server, "make_server", serve)
  return made


def test_the_server_of_a_run_has_one_player(tables, tmp_path):
  settings.save(settings.complete({"agent": "core_size=32"}), tmp_path)
  assert refusal(data_server, "--run_dir", tmp_path, "--port=7000") == "error: no server at 7000"
  assert tables == [([run_files.PLAYER], 32)]


def test_the_server_of_a_league_copies_the_config_from_its_coordinator(tables, tmp_path):
  head, node = tmp_path / "head", tmp_path / "node"
  settings.save(settings.complete(
    {"agent": "core_size=32", "league": {"composition": "terran:1:0:1:1"}}), head)
  coordinator = league.Coordinator(head / run_files.LEAGUE, league.initial_players(["terran"]))
  serving = server.Server(coordinator)
  try:
    assert refusal(data_server, "--run_dir", node, "--port=7000",
                   "--league", serving.address) == "error: no server at 7000"
  finally:
    serving.stop()
    coordinator.close()
  assert tables == [(["terran-main-0", "terran-league_exploiter-0"], 32)]
  assert settings.load(node) == settings.load(head)
