"""A whole study, small, that is killed and resumed; wrong command lines of `study`."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from absl import flags
from absl.testing import flagsaver

from starleague.common import run_files
from starleague.experiments import study
from starleague.experiments.configs import studies
from starleague.experiments.run.companions import runs
from tests.experiments.launch import launch, refusal
from tests.experiments.run.small_studies import STUDY
from tests.experiments.runs import variables

# The launch file with one more study, in a process that can be killed.
_PROGRAM = """
import sys
from starleague.experiments.configs import studies
from tests.experiments.run.small_studies import STUDY
studies.STUDIES["small"] = STUDY
from starleague.experiments import study
from starleague.experiments.run.config import entry
entry.run(study.main, arguments=study.ARGUMENTS)
"""


@pytest.fixture
def small(monkeypatch):
  monkeypatch.setitem(studies.STUDIES, "small", STUDY)
  for name, value in variables().items():
    monkeypatch.setenv(name, value)


def steps_of(folder):
  """Steps of the first run so far."""
  path = folder / "plain_3" / "progress.json"
  return json.loads(path.read_text())["done"] if path.exists() else 0


@pytest.mark.nightly
@pytest.mark.slow
def test_a_killed_study_resumes(small, tmp_path):
  words = ["small", f"--runs_dir={tmp_path}", "--set.steps=20000", "--seeds=3"]
  folder = tmp_path / "small"
  with subprocess.Popen([sys.executable, "-c", _PROGRAM, *words], env=os.environ,
                        stdout=subprocess.DEVNULL, start_new_session=True) as program:
    end = time.monotonic() + 120
    while not 0 < steps_of(folder) < 20000 and time.monotonic() < end:
      time.sleep(0.02)
    program.send_signal(signal.SIGKILL)
  assert 0 < steps_of(folder) < 20000 and not (folder / "study.json").exists()
  saved = max(int(path.name) for path in (
    folder / "plain_3" / run_files.CHECKPOINTS).glob("[0-9]*"))  # updates
  assert launch(study, *words) is None
  document = json.loads((folder / "study.json").read_text())
  assert [(run["arm"], run["seed"]) for run in document["runs"]] == [("plain", 3), ("none", 3)]
  for run in document["runs"]:
    found = run["evaluation"][""]
    assert 20000 <= run["steps"] < 20000 + 128 and -1.0 <= found["mean"] <= 1.0
    assert run["values"] == pytest.approx([found["mean"]])
  # 157 rounds of 128 steps. Each start makes an update in each round but two: the bootstrap steps
  # of a round come with the next, and the last round is not learnt. The first round was saved.
  assert [run["updates"] for run in document["runs"]] == [(157 - 2) - (2 if saved else 1), 157 - 2]
  # Started again, it only reports.
  before = {path: path.stat().st_mtime_ns for path in folder.rglob(runs.OUTCOME)}
  assert launch(study, *words) is None
  assert {path: path.stat().st_mtime_ns for path in before} == before and len(before) == 2


def test_the_command_line_selects_arms_and_seeds(small):
  with flagsaver.flagsaver():
    flags.FLAGS(["study", "--seeds=4,2,4", "--arms=none"])
    assert study.chosen("small") == STUDY._replace(seeds=(4, 2), arms=STUDY.arms[1:])
  with flagsaver.flagsaver():
    flags.FLAGS(["study"])
    assert study.chosen("small") == STUDY


@pytest.mark.parametrize("words, message", [
  (["nothing"], "study 'nothing' does not exist; expected one of impala_corrections_breakout"),
  ([], "expected NAME beside the flags, found no arguments"),
  (["small", "--arms=plain,vtrace"], "--arms: 'vtrace' is no arm; expected some of plain, none"),
  (["small", "--seeds=1,x"], "--seeds must be integers, as 0,1,2, found '1,x'"),
  (["small", "--set.seed=1"], "--set.seed: a study has several seeds; choose them by --seeds"),
  (["small", "--set.stepz=1"], "config key 'stepz' does not exist; the nearest is 'steps'"),
])
def test_wrong_command_lines_of_study(words, message, small, tmp_path):
  assert message in refusal(study, *words, "--runs_dir", tmp_path)
