"""The directory of a run, and the environment variables of its processes."""

import pytest

from starleague.experiments.run import settings, supervision, wiring


@pytest.mark.parametrize("batch_size, accumulate, cores, devices", [
  (32, 1, 1, 1), (32, 1, 2, 2), (32, 1, 6, 4), (32, 4, 16, 8), (6, 1, 4, 3), (7, 1, 4, 1),
  (8, 8, 4, 1),
])
def test_devices_divide_the_batch(batch_size, accumulate, cores, devices):
  variables = supervision.data_parallel(
    {"XLA_FLAGS": "--a", "X": "y"}, batch_size, accumulate, cores)
  assert variables["JAX_NUM_CPU_DEVICES"] == str(devices)
  assert variables["XLA_FLAGS"] == f"--a {supervision.ONE_THREAD}" and variables["X"] == "y"


def test_a_league_and_a_run_of_one_agent_do_not_share_a_directory(tmp_path):
  config = settings.complete({})
  wiring.learner_dir(tmp_path / "a", "main").mkdir(parents=True)
  with pytest.raises(settings.SettingsError, match="/a' is a league: continue it with league, or"):
    supervision.prepare(config, tmp_path / "a")
  (tmp_path / "b" / wiring.CHECKPOINTS).mkdir(parents=True)
  with pytest.raises(settings.SettingsError, match="/b' trains one agent: continue it with train"):
    supervision.prepare(config, tmp_path / "b", league=True)
  supervision.prepare(config, tmp_path / "a", league=True)
  assert settings.load(tmp_path / "a").to_dict() == config.to_dict()
