"""Offline learning as a run: a clone, the methods that improve on it, resuming, wrong input."""

import numpy as np
import pytest

from starleague.common import results, run_files
from starleague.data import checkpoints
from starleague.experiments import offline
from tests.experiments import imitated_games
from tests.experiments.launch import launch, refusal
from tests.experiments.runs import saved_steps


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
  return imitated_games.write(tmp_path_factory.mktemp("data") / "games", 8, 40)


def learn(folder, run, dataset, *settings):
  return launch(offline, "--runs_dir", folder, "--run", run, "--dataset", dataset,
                "--config.imitation.batch_size=8", "--config.imitation.unroll_length=16",
                "--config.learner.log_interval_s=0.001",
                *(f"--config.offline.{setting}" for setting in settings))


def params_of(run_dir, name):
  return checkpoints.load_params(run_dir / name)


@pytest.mark.slow
def test_a_clone_is_resumed_and_improved(dataset, tmp_path):
  assert learn(tmp_path, "clone", dataset, "updates=2") is None
  assert learn(tmp_path, "clone", dataset, "updates=4") is None
  clone = tmp_path / "clone"
  assert saved_steps(clone / run_files.CHECKPOINTS)[-1] == 4
  tags = results.by_tag(results.read(clone / results.FILE_NAME))
  assert [row.update for row in tags["offline/loss/cross_entropy"]] == [1, 2, 3, 4]
  assert "offline/loss/policy" not in tags and "offline/kl/function" not in tags
  assert "offline/loss/value" in tags
  assert (clone / "report.html").exists()

  assert learn(tmp_path, "critic", dataset, "updates=3", "method=emphatic", "emphatic_steps=4",
               f"behaviour={clone}") is None
  critic = tmp_path / "critic"
  start = params_of(critic, run_files.INITIAL)
  for (path, one), (_, other) in zip(
      sorted(start.items()), sorted(params_of(clone, run_files.CHECKPOINTS).items()), strict=True):
    for name in one:
      np.testing.assert_array_equal(one[name], other[name], err_msg=path)
  tags = results.by_tag(results.read(critic / results.FILE_NAME))
  first = {name: rows[0].value for name, rows in tags.items()}
  # Before its first step the policy is the clone: no divergence, ratios of 1, F_t = 1 + t // 4.
  assert abs(first["offline/loss/kl"]) < 1e-5
  for group in ("function", "delay", "others"):
    assert first[f"offline/ratio/{group}"] == pytest.approx(1.0, abs=1e-4)
  assert first["offline/emphasis/mean"] == pytest.approx(2.5, abs=1e-3)
  assert tags["offline/loss/kl"][-1].value > 0.0
  assert "offline/loss/cross_entropy" not in tags
  learnt = params_of(critic, run_files.CHECKPOINTS)
  changed = [np.abs(x - start[module][name]).max() for module, leaf in learnt.items()
             for name, x in leaf.items()]
  assert 0 < max(changed) < 0.01 and np.isfinite(changed).all()


@pytest.mark.parametrize("words, message", [
  (["--dataset", "nowhere"], "error: nowhere is not a dataset of games"),
  (["--dataset", "DATA", "--config.offline.method=cql"],
   "config key 'offline.method' must be one of cloning, winners, actor_critic, emphatic, found"),
  (["--dataset", "DATA", "--config.offline.ratios=none"],
   "config key 'offline.ratios' must be one of cloned, recorded, found 'none'"),
  (["--dataset", "DATA", "--config.offline.method=winners"],
   "needs a cloned behaviour policy: name a run of cloning in 'offline.behaviour'"),
  (["--dataset", "DATA", "--config.offline.method=actor_critic",
    "--config.offline.behaviour=runs/clone", "--config.offline.ratios=recorded"],
   "needs log-probabilities of the actions, and recorded games have none"),
  (["--dataset", "DATA", "--config.offline.emphatic_steps=0"],
   "config key 'offline.emphatic_steps' must be in [1, 10000], found 0"),
  (["--dataset", "DATA", "--config.offline.method=actor_critic",
    "--config.offline.behaviour=runs/clone"], "runs/clone has no weights 'imitation'"),
  (["--dataset", "DATA", "--run", "a/b"], "error: --run must be a name without '/'"),
])
def test_a_wrong_command_line_is_one_line_and_writes_nothing(
    dataset, tmp_path, monkeypatch, words, message):
  monkeypatch.chdir(tmp_path)
  words = [str(dataset) if word == "DATA" else word for word in words]
  assert message in refusal(offline, *words)
  assert list(tmp_path.iterdir()) == []
