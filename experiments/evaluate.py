"""Evaluation games of a run's trained agent, and of its initial weights, against scripted players.

  python -m starleague.experiments.evaluate --run_dir runs/mini
  python -m starleague.experiments.evaluate --run_dir runs/small --races zerg,random
  python -m starleague.experiments.evaluate --run_dir runs/small --games 900 --each_match_up
  python -m starleague.experiments.evaluate --run_dir runs/small --opponents L9,L10
  python -m starleague.experiments.evaluate --run_dir runs/imitator --agents imitation
  python -m starleague.experiments.evaluate --run_dir runs/league --agents zerg-main-0

Prints scores (draws count half) and win rates (wins only) with 95% Wilson intervals, and appends
them to the run's results as score/KIND/OPPONENT and win_rate/KIND/OPPONENT. KIND is `eval` for the
trained agent and `initial` for the weights that reinforcement learning started from. --races names
the races of the agent and of its opponents; KIND then contains them: `eval_zerg_random`. With
--each_match_up the results of each match-up of races in these games follow: `eval_zerg_terran`.
--opponents may name any scripted player of the run's tier, also those that cheat. --agents chooses
the weights; the KIND of the run's imitator is `imitation`. The name of a league's learning player
chooses its weights and its race, and is the KIND. The trained agent of a league is its first main
agent. The temperatures of training are multiplied by `evaluation.temperature` of the run's config.
At the end, the run's report is written again, unless the evaluation is part of a run (--origin).
"""

import pathlib
import time

from absl import flags

from starleague.common import results
from starleague.common.errors import UserError
from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.config.errors import check_known
from starleague.experiments.run.evaluation import evaluating
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents
from starleague.viewers.report import page as report_page

for _name in ("run_dir", "games", "opponents", "origin", "races", "seed"):
  flags.declare_key_flag(_name)
_AGENTS = flags.DEFINE_list(
  "agents", [run_flags.INITIAL, run_flags.TRAINED],
  f"Weights that play: some of {', '.join(run_flags.AGENTS)}, and of the learning players and "
  "snapshots of a league.")
_EACH_MATCH_UP = flags.DEFINE_boolean(
  "each_match_up", False, "Also the results of each match-up of races in the games.")


def main() -> None:
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  given = run_flags.even_games()
  known = (*run_flags.AGENTS, *saved_agents.learners(run_dir), *saved_agents.snapshots(run_dir))
  if not _AGENTS.value:
    raise UserError(f"--agents: expected some of {', '.join(known)}, found ''")
  check_known("--agents", _AGENTS.value, known)
  config = settings.load(run_dir)
  games = given or config.evaluation.games
  parts = registry.make_playing_parts(config, run_flags.OPPONENTS.value or ())
  races = evaluating.race_indices(run_flags.RACES.value, parts)
  path = run_dir / results.FILE_NAME
  origin = run_flags.ORIGIN.value
  if origin is None:
    origin = time.time() - results.last_seconds(path)
  for found in evaluating.evaluate_run(
      registry.game_of(config).engine.make_evaluation, parts, run_dir,
      range(len(parts.opponents)), games, run_flags.SEED.value, races, _AGENTS.value,
      _EACH_MATCH_UP.value):
    results.append(path, evaluating.result_rows(
      found.counts, found.kind, time.time() - origin, found.update))
    for name, counts in found.counts.items():
      print(evaluating.result_line(counts, found.kind, found.update, name), flush=True)
  if run_flags.ORIGIN.value is None:  # a run writes its report itself, at its end
    print(f"report={report_page.write_report(run_dir)}")


if __name__ == "__main__":
  entry.run(main, required=["run_dir"])
