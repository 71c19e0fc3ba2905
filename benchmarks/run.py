"""A whole run on this machine against its parts alone: time to the first update, agent steps/s.

  python -m benchmarks.run                    # a cold start, then three rounds of one minute each

Each round trains for a while and then runs each part alone, with the environment that the run gives
its processes: the actor without a learner, and the update on a batch on the device. A run starts
from the weights that ship with the preset: recording and imitation would take most of a round. Two
processes that shared the cores without loss would come to a share of 1: the rate that the run plays
at over the actor's alone, plus the rate that it learns at over the learner's alone.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import jax
import numpy as np

from benchmarks.learner import make_update
from starleague.actor.loops import programs
from starleague.common import results, run_files
from starleague.data.assembler import Assembler
from starleague.data.z.conditioning import unconditional
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options, saved_agents
from starleague.experiments.run.parts.actor_options import actor_options
from starleague.experiments.run.processes import graph
from starleague.learner.loops import reinforcement_setup

ROOT = pathlib.Path(__file__).parent.parent
WARM_UP_S = 5.0  # after the first update: processes fill their queues


class Whole(NamedTuple):
  """Figures of one run."""

  first_update: float  # seconds from the command to the end of the first update
  played: float  # agent steps/s after WARM_UP_S
  learnt: float


def _rate(totals: list[tuple[float, float]], since: float) -> float:
  """Returns the slope of (seconds, total) rows from `since` to the last row."""
  window = [row for row in totals if row[0] >= since]
  if len(window) < 2:
    raise SystemExit("error: the run ended before it could be measured; raise --seconds")
  return (window[-1][1] - window[0][1]) / (window[-1][0] - window[0][0])


def whole(folder: pathlib.Path, name: str, seconds: float) -> Whole:
  """Runs the launch file `train` for so long and reads its results."""
  began = time.time()
  subprocess.run(
    [sys.executable, "-m", "starleague.experiments.train", "--run", name, "--runs_dir", str(folder),
     "--noevaluate", "--config.init=pretrained", f"--config.seconds={seconds}"],
    cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
  rows = results.read(folder / name / results.FILE_NAME)
  learnt = [(row.seconds, row.value) for row in rows if row.tag == "total/steps_learnt"]
  counts = [row for row in rows if row.tag == "count/steps"]
  totals = np.cumsum([row.value for row in counts])
  played = [(row.seconds, float(total)) for row, total in zip(counts, totals, strict=True)]
  if not learnt:
    raise SystemExit("error: the run ended before its first update; raise --seconds")
  since = learnt[0][0] + WARM_UP_S
  # The times of results count from the start of training, just after the config is written.
  imports = (folder / name / run_files.CONFIG).stat().st_mtime - began
  return Whole(imports + learnt[0][0], _rate(played, since), _rate(learnt, since))


def actor_alone(seconds: float) -> float:
  """Returns the agent steps/s of the rollout program and the assembler, without a learner."""
  config = settings.complete({})
  parts = registry.make_parts(config)
  program = programs.make_single(parts, actor_options(config))
  opponents = 1 + len(parts.opponents)
  conditioning = unconditional(len(parts.maps), parts.mmr)
  state = program.init(jax.random.key(0), np.arange(config.actor.games) % opponents, conditioning)
  params = saved_agents.initial_params(parts, config)
  probabilities = np.full(opponents, 1 / opponents, np.float32)
  assembler = Assembler(parts.config, config.unroll_length, 2 * config.actor.games)
  steps, start = 0, 0.0
  while not start or time.perf_counter() - start < seconds:
    state, records, _ = program.run(params, state, probabilities, conditioning)
    assembler.add(jax.tree.map(np.asarray, records))
    steps += int((np.asarray(records.row) >= 0).sum())
    if not start:  # the first call compiles
      steps, start = 0, time.perf_counter()
  return steps / (time.perf_counter() - start)


def learner_alone(seconds: float) -> float:
  """Returns the agent steps/s of updates on one batch that is on the device."""
  config = settings.complete({})
  parts = registry.make_parts(config)
  run, state, teacher = make_update(parts, config)
  batch = run.place(reinforcement_setup.empty_batch(
    parts.config, learner_options.reinforcement_options(config)))
  updates, start = 0, 0.0
  while not start or time.perf_counter() - start < seconds:
    state, values = run(state, batch, teacher)
    jax.block_until_ready(values)
    updates += 1
    if not start:
      updates, start = 0, time.perf_counter()
  return (updates * config.learner.batch_size * config.unroll_length
          / (time.perf_counter() - start))


PARTS = {"actor": actor_alone, "learner": learner_alone}


def alone(folder: pathlib.Path, part: str, seconds: float) -> float:
  """Runs a part in a process with the environment of a run's processes."""
  variables = graph.environment(folder / "run")
  if part == "learner":
    learner = settings.complete({}).learner
    variables = graph.data_parallel(
      variables, learner.batch_size, learner.accumulate, len(os.sched_getaffinity(0)))
  done = subprocess.run(
    [sys.executable, "-m", "benchmarks.run", "--part", part, "--seconds", str(seconds)], cwd=ROOT,
    env=os.environ | variables, stdout=subprocess.PIPE, text=True, check=True)
  return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--seconds", type=float, default=60.0, help="of training in a round")
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--part", choices=PARTS, help="measure one part alone")
  options = parser.parse_args()
  if options.part:
    print(json.dumps(PARTS[options.part](options.seconds)))
    return
  rounds = []
  with tempfile.TemporaryDirectory() as folder:
    for i in range(options.rounds):
      run = whole(pathlib.Path(folder), f"run{i}", options.seconds)
      part = [alone(pathlib.Path(folder), name, options.seconds / 4) for name in PARTS]
      share = run.played / part[0] + run.learnt / part[1]
      rounds.append((run.played, run.learnt, *part, share))
      start = "compiling everything" if i == 0 else "programs from the cache"
      print(f"first update after {run.first_update:.0f} s ({start}); played {run.played:.0f}, "
            f"learnt {run.learnt:.0f} agent steps/s; alone {part[0]:.0f} and {part[1]:.0f}; share "
            f"{share:.2f}", flush=True)
  played, learnt, actor, learner, share = np.median(rounds, axis=0)
  print(f"medians: played {played:.0f}, learnt {learnt:.0f} agent steps/s; alone {actor:.0f} and "
        f"{learner:.0f}; ratio to the sum of the parts {share:.2f}")


if __name__ == "__main__":
  main()
