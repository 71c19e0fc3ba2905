"""A small but complete run: all processes, a killed learner, the evaluation and the report."""

import pathlib
import re
import signal

import jax
import numpy as np
import pytest

from starleague.common import results, run_files
from starleague.data import checkpoints, games
from starleague.experiments import train
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options
from starleague.learner.loops import reinforcement_setup
from tests.experiments.launch import refusal
from tests.experiments.runs import (
  SIZES,
  kill,
  output_of,
  pids_of,
  running,
  saved_steps,
  wait_for,
)

SETTINGS = ("seconds=12", "demonstrations.players=rusher,builder", "demonstrations.games=16",
            "demonstrations.labels=2", "imitation.labels_epochs=1", "imitation.labels_seconds=0",
            *SIZES, "imitation.epochs=1", "imitation.held_out=0.2",
            "imitation.fine_tune_mmr=0", "imitation.fine_tune_seconds=1",
            "evaluation.games=2", "learner.checkpoint_interval_s=2",
            "learner.log_interval_s=1", "learner.publish_interval_s=2")


def words(runs_dir: pathlib.Path, *arguments: str) -> list[str]:
  return ["--runs_dir", str(runs_dir), "--run", "small",
          *(f"--config.{setting}" for setting in SETTINGS), *arguments]


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory) -> pathlib.Path:
  return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def finished(runs_dir):
  """A finished run whose learner got SIGKILL after a save; its directory and the saved step."""
  run_dir = runs_dir / "small"
  folder = run_dir / run_files.CHECKPOINTS
  with running("train", *words(runs_dir)) as started:
    wait_for(lambda: saved_steps(folder) or started.poll() is not None, "checkpoint")
    kill(started, run_dir, "learner")
    before = saved_steps(folder)[-1]
    output_of(started)
  return run_dir, before


@pytest.mark.slow
def test_a_killed_learner_resumes_from_its_checkpoint(finished):
  run_dir, before = finished
  restored = re.findall(r"restored update=(\d+)", (run_dir / "logs" / "learner.log").read_text())
  assert [int(step) for step in restored] == [before]
  step = saved_steps(run_dir / run_files.CHECKPOINTS)[-1]
  assert step > before
  config = settings.load(run_dir)
  parts = registry.make_parts(config)
  saved = checkpoints.Checkpoints(run_dir / run_files.CHECKPOINTS, parts.config)
  state = reinforcement_setup.make_learner(
    learner_options.learning_agent(parts, config, run_dir),
    learner_options.reinforcement_options(config), run_dir, saved).state
  assert int(state.step[0]) == step
  # Adam, the warm-up and the rate's transformation have counted every applied update, also those
  # before the kill.
  counts = [int(leaf[0]) for leaf in jax.tree.leaves(state.opt_state)
            if leaf.ndim == 1 and np.issubdtype(leaf.dtype, np.integer)]
  assert counts == [step - int(state.skipped[0])] * 3


@pytest.mark.slow
def test_a_run_writes_all_its_files(finished):
  run_dir, _ = finished
  for name in ("config.json", "results.csv", "report.html", "league.sqlite", "tensorboard",
               "initial", "demonstrations", "labels", "imitation", "imitation_best", "z.npz",
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
  assert "student" in games.read(run_dir / "labels").episodes.name
  stopped = re.findall(r"phase=(\S+) complete=True", (run_dir / "logs/imitator.log").read_text())
  assert stopped == ["imitation", "labels", "fine-tuning"]
  assert tags["total/steps_learnt"][-1].value > 0
  assert sum(row.value for row in tags["count/steps"]) > 0


@pytest.mark.nightly
@pytest.mark.slow
def test_an_interrupted_run_stops_cleanly_without_leftover_processes(finished, runs_dir):
  run_dir, _ = finished
  folder = run_dir / run_files.CHECKPOINTS
  before = saved_steps(folder)[-1]
  with running("train", *words(runs_dir, "--config.seconds=10000")) as started:
    wait_for(lambda: (saved_steps(folder) or [0])[-1] > before or started.poll() is not None,
             "further checkpoint")
    started.send_signal(signal.SIGINT)
    output = output_of(started)
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
  error = refusal(train, *words(runs_dir, *arguments))
  assert re.search(message, error), error
