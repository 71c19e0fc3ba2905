"""The weights of a run's agents, and of a league's main agent."""

import jax
import numpy as np
import pytest

from starleague import agent
from starleague.agent import types
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents


def save(folder, step, value):
  checkpoints.save_params(
    folder / f"{step:012d}", {"m": {"w": np.full(2, value)}}, agent.mini(), step)


@pytest.fixture(scope="module")
def parts():
  return registry.make_parts(settings.complete({}))


def save_config(run_dir, composition):
  settings.save(settings.complete({}, {"league.composition": composition}), run_dir)


def test_the_trained_agent_of_a_league_is_its_first_main_agent(parts, tmp_path):
  for player, value in (("protoss-main-0", 5.0), ("terran-league_exploiter-0", 1.0),
                        ("terran-main-0", 2.0), ("terran-main-1", 3.0),
                        ("terran-main_exploiter-0", 4.0)):
    save(run_files.learner_dir(tmp_path, player) / run_files.CHECKPOINTS, 7, value)
  save_config(tmp_path, "terran:2:1:1,protoss:1:0:0")
  params, updates = saved_agents.load(parts, tmp_path, saved_agents.TRAINED)
  assert updates == 7 and params["m"]["w"].tolist() == [2.0, 2.0]
  assert saved_agents.find(parts, tmp_path, saved_agents.TRAINED).race == 1


def test_the_main_agent_of_a_league_is_the_first_one(tmp_path):
  save_config(tmp_path, "zerg:2:1:0,protoss:1:0:0")
  assert saved_agents.main_agent(tmp_path) is None
  for player in ("protoss-main-0", "zerg-main-1", "zerg-main-0", "zerg-main_exploiter-0"):
    run_files.learner_dir(tmp_path, player).mkdir(parents=True)
  assert saved_agents.main_agent(tmp_path) == "zerg-main-0"
  assert saved_agents.main_agents(tmp_path) == ["zerg-main-0", "zerg-main-1"]


def test_updates_of_a_league_are_those_of_the_newest_checkpoints(tmp_path):
  config = settings.complete({})
  assert saved_agents.league_updates(config, tmp_path) == {}
  assert saved_agents.newest_update(config, tmp_path / run_files.CHECKPOINTS) == 0
  assert not list(tmp_path.iterdir())
  for player, step in (("terran-main-0", 3), ("terran-main-0", 7), ("terran-main_exploiter-0", 4)):
    save(run_files.learner_dir(tmp_path, player) / run_files.CHECKPOINTS, step, 0.0)
  assert saved_agents.league_updates(config, tmp_path) == {
    "terran-main-0": 7, "terran-main_exploiter-0": 4}


def test_snapshots_of_a_league_are_found_with_their_updates(parts, tmp_path):
  assert saved_agents.snapshots(tmp_path) == []
  save_config(tmp_path, "zerg:1:1:0")
  save(run_files.learner_dir(tmp_path, "zerg-main-0") / run_files.CHECKPOINTS, 9, 1.0)
  later = run_files.snapshot_path(tmp_path, "zerg-main_exploiter-0-0001")
  for path, value, step in ((later, 2.0, 5), (tmp_path / run_files.INITIAL, 3.0, 4)):
    checkpoints.save_params(path, {"m": {"w": np.full(2, value)}}, agent.mini(), step)
  assert saved_agents.snapshots(tmp_path) == ["zerg-main-0-0000", "zerg-main_exploiter-0-0001"]
  for name, value, updates in (("zerg-main_exploiter-0-0001", 2.0, 5), ("zerg-main-0-0000", 3.0, 0),
                               ("zerg-main-0", 1.0, 9)):
    params, found = saved_agents.load(parts, tmp_path, name)
    assert (params["m"]["w"][0], found) == (value, updates)
    assert saved_agents.find(parts, tmp_path, name).race == types.RACES.index("zerg")
  with pytest.raises(UserError, match="has no weights 'zerg-main-0-0007': expected them in"):
    saved_agents.find(parts, tmp_path, "zerg-main-0-0007")


def test_the_trained_agent_of_a_run(parts, tmp_path):
  with pytest.raises(UserError, match="has no weights 'trained': expected them in .*checkpoints"):
    saved_agents.load(parts, tmp_path, saved_agents.TRAINED)
  folder = tmp_path / run_files.CHECKPOINTS
  folder.mkdir()
  with pytest.raises(UserError, match=f"^{tmp_path} has no checkpoint yet: expected .* {folder}$"):
    saved_agents.find(parts, tmp_path, saved_agents.TRAINED)
  save(folder, 3, 5.0)
  assert saved_agents.load(parts, tmp_path, saved_agents.TRAINED)[1] == 3


@pytest.mark.parametrize("damaged", [False, True])
def test_updates_are_those_behind_the_loaded_weights(parts, tmp_path, damaged):
  """A damaged checkpoint is skipped."""
  folder = tmp_path / run_files.CHECKPOINTS
  for step in (3, 7):
    save(folder, step, float(step))
  if damaged:
    weights = max((folder / f"{7:012d}" / "params").rglob("*"),
                  key=lambda path: path.stat().st_size * path.is_file())
    weights.write_bytes(b"x" + weights.read_bytes()[1:])
  step = 3 if damaged else 7
  params, updates = saved_agents.load(parts, tmp_path, saved_agents.TRAINED)
  assert (updates, params["m"]["w"].tolist()) == (step, [step] * 2)
  found = saved_agents.find(parts, tmp_path, saved_agents.TRAINED)
  assert saved_agents.read(parts, found)[1] == step
  save(tmp_path / run_files.IMITATED, 9, 1.0)  # updates of imitation do not count
  assert saved_agents.load(parts, tmp_path, saved_agents.IMITATOR)[1] == 0


def test_an_imitator_is_that_of_a_run_or_the_included_weights(parts, tmp_path):
  def loaded(source, **values):
    return saved_agents.load_imitator(parts, settings.complete(
      {"demonstrations": {"imitator": str(source), **values}}))

  save(tmp_path / run_files.IMITATED, 3, 5.0)
  save(tmp_path / run_files.CHECKPOINTS, 3, 6.0)
  assert loaded(tmp_path)["m"]["w"].tolist() == [5.0, 5.0]
  assert loaded(tmp_path, agent="trained")["m"]["w"].tolist() == [6.0, 6.0]
  jax.tree.map(np.testing.assert_array_equal, loaded("pretrained"),
               agent.load_pretrained("mini").params)
  with pytest.raises(UserError, match="nowhere has no weights 'imitation'"):
    loaded(tmp_path / "nowhere")


def test_an_imitator_is_copied_once_and_whole(tmp_path):
  source, target = tmp_path / "source", tmp_path / "target"
  source.mkdir()
  with pytest.raises(settings.SettingsError, match="source has no 'z.npz': expected a run that"):
    saved_agents.copy_imitator(source, target)
  (source / run_files.LIBRARY).write_bytes(b"z")
  (source / run_files.INITIAL / "params").mkdir(parents=True)
  (source / run_files.INITIAL / "params" / "data").write_bytes(b"weights")
  saved_agents.copy_imitator(source, target)
  assert (target / run_files.LIBRARY).read_bytes() == b"z"
  assert (target / run_files.INITIAL / "params" / "data").read_bytes() == b"weights"
  (source / run_files.LIBRARY).write_bytes(b"another")
  saved_agents.copy_imitator(source, target)
  assert (target / run_files.LIBRARY).read_bytes() == b"z"
