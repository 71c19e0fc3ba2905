"""Trains the arms of a study of a companion system with equal budgets; writes table and figure.

  python -m starleague.experiments.study impala_corrections_breakout
  python -m starleague.experiments.study impala_corrections_breakout --arms vtrace,none --seeds 0

`experiments/configs/studies.py` defines the studies. All files are written to RUNS_DIR/NAME: a run
of `companion` for each arm and seed, one before them for each teacher that the arms learn from, and
study.json, .md, .svg and .html, also after each run. Ctrl-C stops it cleanly; the same command
resumes it.
"""

import pathlib
import sys

from absl import flags

from starleague.common.errors import UserError
from starleague.experiments.configs.studies import STUDIES, Study
from starleague.experiments.run.companions import studies, study_report, system_flags
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.processes import process_runner
from starleague.experiments.run.progress import bar

ARGUMENTS = (("NAME",),)
_CONFIG = system_flags.define()
flags.adopt_module_key_flags(system_flags)
for _name in ("runs_dir", "arms", "seeds"):
  flags.declare_key_flag(_name)


def chosen(name: str) -> Study:
  """Returns the named study with the arms and seeds of the command line.

  Raises:
    UserError: there is none of that name, or a value is invalid.
  """
  if name not in STUDIES:
    raise UserError(f"study {name!r} does not exist; expected one of {', '.join(STUDIES)}")
  found = STUDIES[name]
  return studies.select(found._replace(seeds=run_flags.seeds(found.seeds)), run_flags.ARMS.value)


def main(name: str) -> None:
  process_runner.interrupt_on_sigterm()
  study = chosen(name)
  folder = pathlib.Path(run_flags.RUNS_DIR.value) / name
  runs = studies.make_runs(study, _CONFIG.given(), folder)
  every = [*studies.make_teachers(study, folder), *runs]
  try:
    with bar.Bar("study", sum(run.chosen.options.steps for run in every), "steps") as shown:
      studies.train(every, shown.update, lambda: study_report.write(study, runs, folder))
  except process_runner.ProcessFailed as error:
    sys.exit(f"error: {error}")
  except KeyboardInterrupt:
    print(f"stopped; the same command resumes from the last checkpoint in {folder}")
    return
  print("\n".join(study_report.write(study, runs, folder)))
  print(f"page={folder / study_report.NAME}.html")


if __name__ == "__main__":
  entry.run(main, arguments=ARGUMENTS)
