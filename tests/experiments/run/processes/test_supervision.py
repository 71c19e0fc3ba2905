"""The directory of a run."""

import pytest

from starleague.common import run_files
from starleague.experiments.run.config import settings
from starleague.experiments.run.processes import supervision


def test_a_league_and_a_run_of_one_agent_do_not_share_a_directory(tmp_path):
  config = settings.complete({})
  run_files.learner_dir(tmp_path / "a", "main").mkdir(parents=True)
  with pytest.raises(settings.SettingsError, match="/a' is a league: continue it with league, or"):
    supervision.prepare(config, tmp_path / "a")
  (tmp_path / "b" / run_files.CHECKPOINTS).mkdir(parents=True)
  with pytest.raises(settings.SettingsError, match="/b' trains one agent: continue it with train"):
    supervision.prepare(config, tmp_path / "b", league=True)
  supervision.prepare(config, tmp_path / "a", league=True)
  assert settings.load(tmp_path / "a").to_dict() == config.to_dict()
