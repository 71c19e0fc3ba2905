"""Methods of offline reinforcement learning with equal updates: scores of games after learning.

For each dataset and seed, a clone learns `--updates` updates. Each method then goes on from that
clone for as many; cloning too. The agents play `--games` games against each opponent. Finished runs
are skipped: the same command resumes the benchmark. One with other settings, or with other data of
the same size, needs another `--out`.

    make offline-data
    python -m benchmarks.offline --sizes s,m --seeds 0,1,2
"""

import argparse
import json
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import jax
import ml_collections

from starleague.actor import evaluation
from starleague.actor.loops import compiled_evaluation
from starleague.common import files, manifests, run_files
from starleague.data import checkpoints
from starleague.data.games.files import MANIFEST
from starleague.experiments.run.config import settings
from starleague.experiments.run.evaluation import estimates, evaluating
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options
from starleague.learner.loops import offline, offline_data
from starleague.learner.loops.options import CLONING, OFFLINE_METHODS

OPPONENTS = ("rusher", "builder", "demo_2000", "demo_4000", "demo_7000")
CLONE = "clone"
# Those of the published scores, whatever the defaults of imitation are.
BATCHES = {"batch_size": 32, "unroll_length": 16, "learning_rate": 3e-3}


def digests_of(data: pathlib.Path, sizes: Sequence[str]) -> dict[str, str]:
  """Returns size -> SHA-256 of the dataset's manifest; SystemExit if there is none."""
  try:
    return {size: manifests.file_digest(data / size / MANIFEST) for size in sizes}
  except FileNotFoundError as error:
    raise SystemExit(f"error: --sizes: expected datasets of games in {data}, found no "
                     f"{error.filename}; make offline-data records s, m and l") from error


def keep_settings(arguments: argparse.Namespace) -> None:
  """Writes the settings of the runs into their folder; SystemExit if it has runs of others.

  They include the datasets' digests. Runs of further datasets may follow.
  """
  digests = digests_of(arguments.data, arguments.sizes)
  file = arguments.out / "settings.json"
  wanted = {"updates": arguments.updates, "games": arguments.games, "offline": arguments.offline,
            "data": digests}
  found = json.loads(file.read_text()) if file.exists() else wanted
  known = found.get("data", {})
  wanted["data"] = {**known, **digests}
  if "data" not in found or {**found, "data": {**digests, **known}} != wanted:
    raise SystemExit(f"error: {arguments.out} has runs of {json.dumps(found)}, not of "
                     f"{json.dumps(wanted)}; choose another --out")
  with files.replacing(file) as written:
    json.dump(wanted, written)


def config_of(arguments: argparse.Namespace, run: str, seed: int,
              clone: pathlib.Path | None) -> ml_collections.ConfigDict:
  """Returns the config of a method's run; without a clone, that of the clone."""
  return settings.complete({
    "seed": seed, "environment": {"opponents": ",".join(OPPONENTS)}, "imitation": BATCHES,
    "offline": {"method": CLONING if clone is None else run, "updates": arguments.updates,
                "behaviour": "" if clone is None else str(clone),
                **arguments.offline}})


def learn(config: ml_collections.ConfigDict, run_dir: pathlib.Path, dataset: pathlib.Path) -> Any:
  """Learns a run to its end, where it is not finished; returns its parameters."""
  options = learner_options.offline_options(config)
  agent = learner_options.offline_agent(registry.make_parts(config), config)
  saved = checkpoints.Checkpoints(run_dir / run_files.CHECKPOINTS, agent.config)
  if options.updates not in saved.steps():
    data = offline_data.open_data(dataset, options)
    if not offline.learn(agent, options, run_dir, data, time.time(), lambda step: None):
      raise SystemExit("stopped; the same command resumes the benchmark")
  return checkpoints.load_params(saved.directory, agent.config)


def play(arguments: argparse.Namespace) -> list[dict[str, Any]]:
  """Returns the results of all runs, which OUT/results.json keeps."""
  file = arguments.out / "results.json"
  found = json.loads(file.read_text()) if file.exists() else []
  done = {(row["size"], row["seed"], row["method"]) for row in found}
  config = config_of(arguments, CLONE, 0, None)
  evaluate = compiled_evaluation.make_evaluation(
    registry.make_parts(config), range(len(OPPONENTS)), arguments.games, seed=0)
  for seed in arguments.seeds:
    for size in arguments.sizes:
      folder, dataset = arguments.out / f"{size}_{seed}", arguments.data / size
      for run in (CLONE, *OFFLINE_METHODS):
        if (size, seed, run) in done:
          continue
        begun = time.time()
        clone = None if run == CLONE else folder / CLONE
        params = learn(config_of(arguments, run, seed, clone), folder / run, dataset)
        row = {"size": size, "seed": seed, "method": run, "seconds": time.time() - begun,
               "counts": evaluation.count_by_name(evaluate(params), OPPONENTS)}
        print(json.dumps(row), flush=True)
        found.append(row)
        with files.replacing(file) as written:
          json.dump(found, written)
  return found


def scores(found: list[dict[str, Any]], size: str, run: str,
           opponent: str | None) -> dict[int, float]:
  """Returns the scores of a method's runs by seed; without an opponent, the mean over all."""
  names = OPPONENTS if opponent is None else (opponent,)
  return {row["seed"]: sum(evaluating.score_of(evaluation.Counts(*row["counts"][name])).value
                           for name in names) / len(names)
          for row in found if (row["size"], row["method"]) == (size, run)}


def cell(values: list[float]) -> str:
  """Returns a mean in percent with its 95% t interval."""
  mean, low, high = (100.0 * x for x in estimates.mean(values))
  return f"{mean:.1f}" + (f" ({low:.1f} to {high:.1f})" if len(values) > 1 else "")


def table(found: list[dict[str, Any]]) -> list[str]:
  """Returns the mean scores over the seeds, and differences of equal seeds, as Markdown."""
  columns = (*OPPONENTS, None)
  lines = [f"| data | method | seeds | {' | '.join(OPPONENTS)} | mean |",
           "|---|---|---|" + "---|" * len(columns)]
  for size in sorted({row["size"] for row in found}, key="sml".find):
    for run in (CLONE, *OFFLINE_METHODS):
      if count := len(scores(found, size, run, None)):
        cells = " | ".join(cell(list(scores(found, size, run, name).values())) for name in columns)
        lines.append(f"| {size.upper()} | {run} | {count} | {cells} |")
    base = {name: scores(found, size, CLONING, name) for name in columns}
    for run in OFFLINE_METHODS:  # seed by seed: both start from the same clone
      others = {name: scores(found, size, run, name) for name in columns}
      seeds = sorted(base[None].keys() & others[None].keys())
      if run != CLONING and seeds:
        cells = " | ".join(cell([others[name][seed] - base[name][seed] for seed in seeds])
                           for name in columns)
        lines.append(f"| {size.upper()} | {run} - {CLONING} | {len(seeds)} | {cells} |")
  return lines


def seeds_of(text: str) -> list[int]:
  """Returns the seeds of an option."""
  words = text.split(",")
  if not all(word.isdecimal() for word in words):
    raise argparse.ArgumentTypeError(f"expected whole numbers from 0, as 0,1,2; found {text}")
  return [int(word) for word in words]


def changes_of(text: str) -> dict[str, Any]:
  """Returns the changed keys of an option."""
  try:
    found = json.loads(text)
  except json.JSONDecodeError:
    found = None
  if not isinstance(found, dict):
    raise argparse.ArgumentTypeError(
      f"expected a JSON object, as {{\"batch_size\": 8}}; found {text}")
  return found


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("runs/offline_data"))
  parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/offline"))
  parser.add_argument("--sizes", default="s,m,l", type=lambda text: text.split(","),
                      help="folders of --data")
  parser.add_argument("--seeds", default="0,1,2", type=seeds_of)
  parser.add_argument("--updates", type=int, default=400)
  parser.add_argument("--games", type=int, default=200, help="against each opponent, even")
  parser.add_argument("--offline", default="{}", type=changes_of,
                      help="changed keys of the config group, as JSON")
  arguments = parser.parse_args()
  try:
    config_of(arguments, CLONE, 0, None)
  except settings.SettingsError as error:
    parser.error(str(error))
  arguments.out.mkdir(parents=True, exist_ok=True)
  keep_settings(arguments)
  jax.config.update("jax_compilation_cache_dir", str((arguments.out / "compiled").absolute()))
  print("\n".join(table(play(arguments))))


if __name__ == "__main__":
  main()
