"""A league's run: what is refused before a process starts."""

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
  assert started == ["run_processes"]
  run_files.snapshot_path(tmp_path, "terran-main-0-0000").mkdir(parents=True)
  (tmp_path / run_files.LEAGUE).touch()
  with pytest.raises(LeagueError, match="league.sqlite is empty, expected the league of an"):
    league_run.train(config, tmp_path, None)
  assert started == ["run_processes"]
