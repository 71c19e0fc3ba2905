"""A small but complete run: all processes, a killed learner, the evaluation and the report."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest

from starleague.common import results
from starleague.experiments.run import learner_setup, settings, wiring
from starleague.learner import checkpoints
from tests.experiments.runs import DEADLINE_S, SIZES, pids_of, variables, wait_for

SETTINGS = ("seconds=20", "demonstrations.players=rusher,builder", "demonstrations.games=12",
            *SIZES, "imitation.epochs=1", "imitation.held_out=0.2",
            "imitation.fine_tune_mmr=0", "imitation.fine_tune_seconds=1",
            "learner.value_warm_up=2", "evaluation.games=2",
            "learner.checkpoint_interval_s=2",
            "learner.log_interval_s=1", "learner.publish_interval_s=2")


def command(runs_dir: pathlib.Path, *arguments: str) -> list[str]:
  return [sys.executable, "-m", "starleague.experiments.train", "--runs_dir", str(runs_dir),
          "--run", "small", *(f"--config.{setting}" for setting in SETTINGS), *arguments]


def saved_steps(run_dir: pathlib.Path) -> list[int]:
  folder = run_dir / wiring.CHECKPOINTS
  return sorted(int(path.name) for path in folder.glob("[0-9]*")) if folder.exists() else []


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory) -> pathlib.Path:
  return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def finished(runs_dir):
  """A finished run whose learner got SIGKILL after a save; its directory and the saved step."""
  run_dir = runs_dir / "small"
  started = subprocess.Popen(
    command(runs_dir), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    env=variables())
  try:
    wait_for(lambda: len(saved_steps(run_dir)) > 1 or started.poll() is not None, "checkpoint")
    killed = wait_for(lambda: pids_of(run_dir, "learner"), "learner")
    for pid in killed:
      os.kill(pid, signal.SIGKILL)
    before = saved_steps(run_dir)[-1]
    output, _ = started.communicate(timeout=DEADLINE_S)
  finally:
    started.kill()
  assert started.returncode == 0, output
  return run_dir, before


@pytest.mark.slow
def test_a_killed_learner_resumes_from_its_checkpoint(finished):
  run_dir, before = finished
  restored = re.findall(r"restored update=(\d+)", (run_dir / "logs" / "learner.log").read_text())
  assert [int(step) for step in restored] == [before]
  assert saved_steps(run_dir)[-1] > before
  config = settings.load(run_dir)
  parts = wiring.make_parts(config)
  saved = checkpoints.Checkpoints(run_dir / wiring.CHECKPOINTS, parts.config)
  state = learner_setup.make_learner(parts, config, run_dir, saved).state
  step = saved_steps(run_dir)[-1]
  assert int(state.step[0]) == step
  # Adam and the warm-up have counted every applied update, also those before the kill.
  counts = [int(leaf[0]) for leaf in jax.tree.leaves(state.opt_state) if leaf.ndim == 1]
  assert counts == [step - int(state.skipped[0])] * 2


@pytest.mark.slow
def test_a_run_writes_all_its_files(finished):
  run_dir, _ = finished
  for name in ("config.json", "results.csv", "report.html", "league.sqlite", "tensorboard",
               "initial", "demonstrations", "imitation", "imitation_best", "z.npz",
               "logs/actor_0.log"):
    assert (run_dir / name).exists(), name
  tags = results.by_tag(results.read(run_dir / results.FILE_NAME))
  for opponent in settings.load(run_dir).environment.opponents.split(","):
    for kind in ("initial", "eval"):
      score, rate = (tags[f"{tag}/{kind}/{opponent}"][-1] for tag in ("score", "win_rate"))
      assert rate.low <= rate.value <= rate.high
      assert score.low <= score.value <= score.high
      assert rate.value <= score.value
  assert np.isfinite([row.value for row in tags["loss/total"]]).all()
  assert np.isfinite([row.value for row in tags["imitation/loss/held_out"]]).all()
  assert tags["total/steps_learnt"][-1].value > 0
  assert sum(row.value for row in tags["count/steps"]) > 0


@pytest.mark.slow
def test_an_interrupted_run_stops_cleanly_without_leftover_processes(finished, runs_dir):
  run_dir, _ = finished
  before = saved_steps(run_dir)[-1]
  started = subprocess.Popen(
    command(runs_dir, "--config.seconds=10000"), stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT, text=True, start_new_session=True,
    env=variables())
  wait_for(lambda: (saved_steps(run_dir) or [0])[-1] > before or started.poll() is not None,
           "further checkpoint")
  started.send_signal(signal.SIGINT)
  output, _ = started.communicate(timeout=DEADLINE_S)
  assert started.returncode == 0, output
  assert "the same command resumes from the last checkpoint" in output
  for module in ("data_server", "learner", "actor"):
    assert not pids_of(run_dir, module)


@pytest.mark.slow
@pytest.mark.parametrize("arguments, message", [
  (("--config.preset=huge",), "'preset'.*'huge'"),
  (("--config.actor.gamse=3",), "gamse"),
  (("--config.seed=5",), "was started with seed = 0, found 5"),
])
def test_invalid_values_are_refused_at_the_start(finished, runs_dir, arguments, message):
  done = subprocess.run(command(runs_dir, *arguments), capture_output=True, text=True,
                        timeout=DEADLINE_S, check=False)
  assert done.returncode != 0
  assert re.search(message, done.stdout + done.stderr), done.stdout + done.stderr
