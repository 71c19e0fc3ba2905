"""Trains a population of runs of one companion system, which copy the better ones' weights.

  python -m starleague.experiments.population impala --set.task=minatar-asterix --members=6 \
    --ranges=learning_rate=1e-4:1e-2,entropy_cost=1e-4:1e-1
  python -m starleague.experiments.population impala --selection=none   (a random search)

All files are written to RUNS_DIR/RUN, by default RUNS_DIR/SYSTEM_population: population.sqlite, a
run of `companion` for each member, logs, and population.json with scores and the schedule of
hyperparameters that was found. Ctrl-C stops it cleanly; the same command resumes each member from
its last report.
"""

import sys

from absl import flags

from starleague.common import stopping
from starleague.experiments.run.companions import populations, system_flags
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.processes import process_runner, supervision
from starleague.experiments.run.progress import bar

ARGUMENTS = (("SYSTEM",),)
_CONFIG = system_flags.define()
flags.adopt_module_key_flags(system_flags)
for _name in ("run", "runs_dir"):
  flags.declare_key_flag(_name)
_MEMBERS = flags.DEFINE_integer(
  "members", 6, "Members of the population.", lower_bound=2,
  upper_bound=populations.MOST_MEMBERS)
_MEMBER = flags.DEFINE_integer(
  "member", None, "Number of the member that this process trains; the parent sets it.",
  lower_bound=0)
_INTERVAL = flags.DEFINE_integer(
  "interval", 100_000, "Steps of a member between two reports.", lower_bound=1)
_SELECTION = flags.DEFINE_enum(
  "selection", "truncation", [*populations.SELECTIONS, populations.RANDOM_SEARCH],
  "Which member is copied: by a t-test, by truncation, or none: a random search.")
_EXPLORATION = flags.DEFINE_enum(
  "exploration", "perturb", list(populations.EXPLORATIONS),
  "How copied hyperparameters change: perturbed, or drawn again.")
_RANGES = flags.DEFINE_list(
  "ranges", ["learning_rate=1e-4:1e-2", "entropy_cost=1e-4:1e-1"],
  "Ranges of the hyperparameters, NAME=LOW:HIGH; uniform in the logarithm, or with :linear.")


def main(name: str) -> None:
  chosen = _CONFIG.value(name)
  run = run_flags.RUN.value if run_flags.RUN.present else f"{name}_population"
  folder = supervision.run_dir_of(run_flags.RUNS_DIR.value, run)
  sizes = populations.Sizes(
    _MEMBERS.value, _INTERVAL.value, _SELECTION.value, _EXPLORATION.value)
  if _MEMBER.value is not None:
    complete = populations.work(folder, chosen, sizes, _RANGES.value, _MEMBER.value,
                                stopping.stop_event(), lambda steps, text: None)
    sys.exit(0 if complete else entry.INTERRUPTED)
  process_runner.interrupt_on_sigterm()
  argv = ["-m", "starleague.experiments.population", *sys.argv[1:]]
  try:
    with supervision.only_one(folder), bar.Bar(
        name, sizes.members * chosen.options.steps, "steps") as shown:
      found = populations.execute(folder, chosen, sizes, _RANGES.value, argv, shown.update)
  except process_runner.ProcessFailed as error:
    sys.exit(f"error: {error}")
  except KeyboardInterrupt:
    print(f"stopped; the same command resumes each member from its last report in {folder}")
    return
  for member, score in found["scores"].items():
    print(f"{member} return={score:.3f}")
  print(f"best={found['best']} copies={found['copies']} result={folder / populations.RESULT}")


if __name__ == "__main__":
  entry.run(main, arguments=ARGUMENTS)
