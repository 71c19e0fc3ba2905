"""Records demonstrations: games between scripted players, as a dataset of whole games.

  python -m starleague.experiments.demonstrate --dataset data/demonstrations --games 2000
  python -m starleague.experiments.demonstrate --preset small --players rush,macro,defence \\
    --dataset data/strategies --games 200
  python -m starleague.experiments.demonstrate --student runs/imitator --dataset data/labels \\
    --teacher_share 0.5 --games 500

Every pair of the players meets, each player also itself. With --opponents, each player meets each
opponent. Maps and sides are drawn, and races unless --races names those of both. Both players'
decisions are recorded. Started again, the command continues until the dataset has --games games.
`starleague.data.games` reads the result: see docs/datasets.md. The display of --run_dir shows it.

With --student, a run's agent plays the first side, and a teacher of --players labels its states.
With --labels=student the actions taken are recorded. See docs/imitation.md.
"""

import pathlib
import time
from collections.abc import Callable

from absl import flags

from starleague.common import progress
from starleague.common.text import count
from starleague.data import packages
from starleague.data.games import files
from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.datasets import demonstrations, students
from starleague.experiments.run.progress import bar

for _name in ("dataset", "games", "opponents", "preset", "races", "run_dir", "seed"):
  flags.declare_key_flag(_name)
_PLAYERS = flags.DEFINE_list(
  "players", [f"demo_{mmr}" for mmr in range(2000, 7001, 1000)], "Scripted players.")
_STUDENT = flags.DEFINE_string(
  "student", None, f"Directory of the run whose agent plays, or {settings.PRETRAINED}.")
_STUDENT_AGENT = flags.DEFINE_enum(
  "student_agent", None, run_flags.AGENTS, "Default: imitation; if --labels=student, trained.")
_STUDENT_Z = flags.DEFINE_boolean(
  "student_z", True, "Whether the student observes z of its teacher's plan.")
_LABELS = flags.DEFINE_enum(
  "labels", "teacher", ["teacher", "student"],
  "Whose actions are recorded at the student's states. `student`: its own, as in evaluation.")
_TEACHER_FROM = flags.DEFINE_float(
  "teacher_from", None, "Seconds of game time after which its teacher takes over.", lower_bound=0.0)
_SHARE = flags.DEFINE_float(
  "teacher_share", None, "Share of the student's decisions that its teacher takes.", 0.0, 1.0)

Record = Callable[[int, Callable[[files.Description], None]], files.Description]


def make_record(path: pathlib.Path) -> Record:
  """Returns the function that records a number of games and reports its progress.

  Raises:
    UserError: the players cannot play, or teach the student.
  """
  options = students.Options(
    _STUDENT.value, _STUDENT_AGENT.value, _SHARE.value, _STUDENT_Z.value,
    _LABELS.value == "teacher", _TEACHER_FROM.value)
  students.check_options(options)
  players = demonstrations.Demonstrators(
    run_flags.PRESET.value or students.preset_of(options), tuple(_PLAYERS.value),
    run_flags.SEED.value,
    opponents=tuple(run_flags.OPPONENTS.value or ()),
    races=demonstrations.race_indices(run_flags.RACES.value))
  demonstrations.check(players)
  if options.source is None:
    return lambda games, report: demonstrations.record(path, players, games, report)
  student = students.choose(options, players)
  return lambda games, report: students.record(path, players, student, games, report)


def main() -> None:
  path = pathlib.Path(run_flags.given(run_flags.DATASET))
  packages.require("pyarrow")
  run_dir = run_flags.existing_run_dir()
  demonstrations.use_cores()
  record = make_record(path)
  games, start = run_flags.GAMES.value or 1000, time.monotonic()
  with bar.Bar("demonstrations", games, "games") as shown:
    def report(written: files.Description) -> None:
      detail = f"{'student, ' if _STUDENT.value else ''}{count(written.decisions)} decisions"
      shown.update(written.games, detail)
      if run_dir is not None:
        progress.write(run_dir, progress.Progress(
          progress.DEMONSTRATIONS, written.games, games, "games", detail))

    found = record(games, report)
  size = sum(file.stat().st_size for file in path.glob("*.parquet"))
  print(f"recorded games={found.games} decisions={found.decisions} megabytes={size / 1e6:.1f} "
        f"kilobytes_a_decision={size / max(found.decisions, 1) / 1e3:.2f} "
        f"seconds={time.monotonic() - start:.0f} path={path}")


if __name__ == "__main__":
  entry.run(main, required=["dataset"])
