"""Imitation as a run: a killed imitator, the best snapshot, the report, fine-tuning."""

import json
import re

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.common import results, run_files
from starleague.data import checkpoints
from starleague.experiments import league, offline, supervise, train
from starleague.learner.loops.imitation_setup import Best, Position
from tests.experiments import imitated_games
from tests.experiments.launch import refusal
from tests.experiments.runs import SIZES, kill, output_of, running, saved_steps, wait_for

SETTINGS = ("seconds=0", "epochs=3", "held_out=0.2", "fine_tune_epochs=1", "fine_tune_seconds=0",
            "evaluate_interval_s=30", "checkpoint_interval_s=2", "learning_rate=3e-3",
            "unroll_length=16")
DEADLINE_S = 900


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
  return imitated_games.write(tmp_path_factory.mktemp("data") / "games", 20, 48)


@pytest.mark.slow
def test_a_killed_imitator_resumes_and_the_best_snapshot_goes_on(dataset, tmp_path):
  run_dir = tmp_path / "small"
  with running("supervise", "--runs_dir", str(tmp_path), "--run", "small",
               "--dataset", str(dataset), "--config.learner.log_interval_s=1",
               *(f"--config.{setting}" for setting in SIZES),
               *(f"--config.imitation.{setting}" for setting in SETTINGS)) as started:
    wait_for(lambda: saved_steps(run_dir / run_files.IMITATION) or started.poll() is not None,
             "checkpoint")
    kill(started, run_dir, "imitate")
    before = saved_steps(run_dir / run_files.IMITATION)[-1]
    output_of(started)
  log = (run_dir / "logs" / "imitator.log").read_text()
  assert int(re.search(r"restored update=(\d+) phase=0", log)[1]) >= before > 0

  # 16 games of two episodes in eight slots, three chunks each, three times; then their winners.
  main = 3 * 2 * 16 * 3 // 8
  last = main + 16 * 3 // 8
  assert saved_steps(run_dir / run_files.IMITATION)[-1] == last
  best, = saved_steps(run_dir / run_files.IMITATED)
  assert 0 < best <= last
  manifest = checkpoints.read_manifest(run_dir / run_files.IMITATED / f"{best:012d}")
  assert manifest["extra"]["phase"] == "fine-tuning"
  tags = results.by_tag(results.read(run_dir / results.FILE_NAME))
  # Both phases measure after the last update of the first, fine-tuning as the last.
  held_out = {row.update: row.value for row in tags["imitation/loss/held_out"]}
  fine_tuned = [loss for step, loss in held_out.items() if step >= main]
  assert manifest["extra"]["held_out_loss"] == pytest.approx(min(fine_tuned), rel=1e-6)
  assert np.isfinite([row.value for row in tags["imitation/loss/cross_entropy"]]).all()
  assert {row.value for row in tags["imitation/held_out/illegal/units"]} == {0.0}
  params = checkpoints.load_params(run_dir / run_files.IMITATED)
  initial = checkpoints.load_params(run_dir / run_files.IMITATION)
  assert params.keys() == initial.keys()
  assert all(np.isfinite(x).all() for entries in params.values() for x in entries.values())
  page = (run_dir / "report.html").read_text()
  assert "<h2>Imitation</h2>" in page and "Accuracy by argument, held-out games" in page
  assert json.loads((run_dir / "progress.json").read_text())["phase"] == "report"


@pytest.mark.parametrize("words, message", [
  (["--dataset", "nowhere"], "error: nowhere is not a dataset of games"),
  (["--dataset", "DATA", "--run", "a/b"], "error: --run must be a name without '/'"),
  (["--dataset", "DATA", "--config.imitation.fine_tune_epochs=1",
    "--config.imitation.fine_tune_mmr=7000"], "fine-tuning found 0 episodes to learn"),
  (["--dataset", "DATA", "--config.imitation.seconds=0"], "must not both be 0"),
])
def test_a_wrong_command_line_is_one_line_and_writes_nothing(
    dataset, tmp_path, monkeypatch, words, message):
  monkeypatch.chdir(tmp_path)
  words = [str(dataset) if word == "DATA" else word for word in words]
  assert message in refusal(supervise, *words)
  assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module, name", [
  (supervise, run_files.IMITATION), (offline, run_files.CHECKPOINTS)])
def test_a_run_of_another_dataset_is_refused_before_anything_is_written(
    dataset, tmp_path, module, name):
  saved = checkpoints.Checkpoints(tmp_path / "run" / name, agent_config.mini())
  saved.save(1, Best({"m": {"w": np.zeros(2, np.float32)}}),
             Position(batch=1, dataset="0" * 64)._asdict())
  before = sorted(tmp_path.rglob("*"))
  assert ("run' has learnt from another dataset than "
          f"{dataset} is now: expected SHA-256 000000000000, found") in refusal(
    module, "--runs_dir", tmp_path, "--run", "run", "--dataset", dataset)
  assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("module", [train, league])
@pytest.mark.parametrize("words, message", [
  (["--config.demonstrations.dataset=nowhere"], "error: nowhere is not a dataset of games"),
  (["--config.demonstrations.dataset=DATA", "--config.demonstrations.imitator=elsewhere"],
   "elsewhere"),
])
def test_a_run_that_cannot_imitate_starts_no_process(
    dataset, tmp_path, monkeypatch, module, words, message):
  monkeypatch.chdir(tmp_path)
  assert message in refusal(module, *(word.replace("DATA", str(dataset)) for word in words))
  assert list(tmp_path.iterdir()) == []
