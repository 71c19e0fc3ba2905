"""Trains the arms of an ablation with equal budgets, lets them play, and draws their figures.

  python -m starleague.experiments.ablate figure3_human_data
  python -m starleague.experiments.ablate figure3_human_data --seeds 0 --updates 200
  python -m starleague.experiments.ablate figure3_self_play --imitator runs/small \
    --config=experiments/configs/small.py --opponents rush,macro,defence

`experiments/configs/ablations.py` defines the ablations. All files are written to RUNS_DIR/NAME: a
run of `train` for each arm and seed, games.json, and ablation.json, .md, .svg and .html. Ctrl-C
stops it cleanly; the same command resumes it.
"""

import pathlib
import sys

from absl import flags

from starleague.common.errors import UserError
from starleague.experiments.configs.ablations import ABLATIONS, Ablation, Arm
from starleague.experiments.run.ablation import arm_runs, games, report
from starleague.experiments.run.config import config_flags, entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.processes import process_runner, supervision
from starleague.experiments.run.progress import bar

ARGUMENTS = (("NAME",),)
_CONFIG = config_flags.define(pathlib.Path(__file__).parent / "configs" / "mini.py")
flags.adopt_module_key_flags(config_flags)
for _name in ("runs_dir", "arms", "seeds", "opponents", "match_games", "exploiter_updates"):
  flags.declare_key_flag(_name)
_IMITATOR = flags.DEFINE_string(
  "imitator", None, "Run whose imitator all arms start from. Default: each seed makes its own.")
_UPDATES = flags.DEFINE_integer(
  "updates", None, "Updates of reinforcement learning of each run. Default: the ablation's.",
  lower_bound=1)
_GAMES = flags.DEFINE_integer(
  "entrant_games", None, "Games of each agent against each scripted player, half from each side. "
  "Default: the ablation's.", lower_bound=2)


def chosen(name: str) -> Ablation:
  """Returns the named ablation with the seeds and sizes of the command line.

  Raises:
    UserError: there is none of that name, or a value is invalid.
  """
  if name not in ABLATIONS:
    raise UserError(f"ablation {name!r} does not exist; expected one of {', '.join(ABLATIONS)}")
  found = ABLATIONS[name]
  found = found._replace(
    arms=_arms(found), opponents=tuple(run_flags.OPPONENTS.value or found.opponents),
    seeds=run_flags.seeds(found.seeds), updates=_UPDATES.value or found.updates,
    games=_GAMES.value or found.games, match_games=run_flags.match_games(found.match_games),
    exploiter_updates=run_flags.EXPLOITER_UPDATES.value or found.exploiter_updates)
  if found.games % 2:
    raise UserError(f"--entrant_games must be even (half from each side), found {found.games}")
  return found


def _arms(ablation: Ablation) -> tuple[Arm, ...]:
  """Returns the arms of the command line in the ablation's order.

  Raises:
    UserError: an arm does not exist or is named twice, or there are fewer than two.
  """
  if run_flags.ARMS.value is None:
    return ablation.arms
  found = tuple(arm for arm in ablation.arms if arm.name in run_flags.ARMS.value)
  if len(found) < 2 or len(found) != len(run_flags.ARMS.value):
    raise UserError(f"--arms must be two or more of {','.join(arm.name for arm in ablation.arms)}, "
                    f"each once, found {','.join(run_flags.ARMS.value)!r}")
  return found


def main(name: str) -> None:
  process_runner.interrupt_on_sigterm()
  ablation = chosen(name)
  folder = supervision.run_dir_of(run_flags.RUNS_DIR.value, name)
  imitator = pathlib.Path(_IMITATOR.value) if _IMITATOR.value else None
  runs = arm_runs.make_runs(ablation, _CONFIG.load, _CONFIG.chosen(), folder)
  exploits = arm_runs.make_exploits(ablation, runs)
  every = [*runs, *exploits]
  try:
    with bar.Bar("training", sum(run.budget for run in every), "updates") as shown:
      arm_runs.train(every, imitator, shown.update)
    with bar.Bar("games", games.count_games(ablation, runs), "games") as shown:
      played = games.play_games(ablation, runs, exploits, folder, shown.update)
  except process_runner.ProcessFailed as error:
    sys.exit(f"error: {error}")
  except KeyboardInterrupt:
    print(f"stopped; the same command resumes from the last checkpoint in {folder}")
    return
  print("\n".join(report.write(ablation, runs, played, folder)))
  print(f"page={folder / report.NAME}.html")


if __name__ == "__main__":
  entry.run(main, arguments=ARGUMENTS)
