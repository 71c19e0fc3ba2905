"""Games of a run's agent, and of the random weights it began with, against scripted players.

  python -m starleague.experiments.evaluate --run_dir runs/mini

Writes scores with 95% intervals into the run's results and prints them.
"""

import pathlib
import time
from collections.abc import Sequence

import jax
from absl import flags

from starleague import league
from starleague.actor import evaluation
from starleague.common import results
from starleague.experiments.run import entry, settings, wiring
from starleague.experiments.run import flags as run_flags
from starleague.learner import checkpoints

for _name in ("run_dir", "origin", "seed"):
  flags.declare_key_flag(_name)
_GAMES = flags.DEFINE_integer(
  "games", None, "Games against each scripted player, half from each side; the run's own setting "
  "if not given.", lower_bound=2)
_OPPONENTS = flags.DEFINE_list(
  "opponents", None, "Scripted players to meet, of the run's own; all of them if not given.")


def opponent_indices(names: Sequence[str], opponents: Sequence[str]) -> list[int]:
  """Indices of scripted players among a run's opponents.

  Raises:
    SettingsError: one that is not among them.
  """
  for name in names:
    if name not in opponents:
      raise settings.SettingsError(
        f"opponent {name!r} is not one of the run's: {', '.join(opponents)}.")
  return [opponents.index(name) for name in names]


def score_rows(scores: dict[str, evaluation.Score], kind: str, seconds: float,
                  update: int) -> list[results.Row]:
  """Scores (draws count half) by opponent with their 95% Wilson intervals, as results rows."""
  rows = []
  for name, score in scores.items():
    wins = score.wins + 0.5 * score.draws
    low, high = league.wilson_interval(wins, score.games)
    rows.append(results.Row(seconds, update, f"score/{kind}/{name}",
                            wins / score.games, low, high))
  return rows


def main() -> None:
  run_dir = pathlib.Path(run_flags.RUN_DIR.value)
  config = settings.load(run_dir)
  parts = wiring.make_parts(config)
  indices = opponent_indices(_OPPONENTS.value or parts.opponents, parts.opponents)
  path = run_dir / results.FILE_NAME
  origin = run_flags.ORIGIN.value
  if origin is None:
    origin = time.time() - results.last_seconds(path)
  evaluator = evaluation.make_evaluator(
    parts.environment, parts.policy, parts.scripted, indices,
    _GAMES.value or config.evaluation.games, races=parts.races, maps=parts.maps)
  agents = {"random": run_dir / wiring.INITIAL, "eval": run_dir / wiring.CHECKPOINTS}
  trained = checkpoints.Checkpoints(agents["eval"], parts.config).steps()
  for kind, where in agents.items():
    params = checkpoints.load_params(where, parts.config)
    step = trained[-1] if kind == "eval" else 0
    found = evaluation.evaluate(evaluator, params, jax.random.key(run_flags.SEED.value))
    scores = {parts.opponents[index]: score for index, score in found.items()}
    results.append(path, score_rows(scores, kind, time.time() - origin, step))
    for name, score in scores.items():
      low, high = league.wilson_interval(score.wins, score.games)
      print(f"agent={kind} update={step} opponent={name} games={score.games} "
            f"wins={score.wins} draws={score.draws} losses={score.losses} "
            f"won={score.wins / score.games:.3f} interval=[{low:.3f}, {high:.3f}]", flush=True)


if __name__ == "__main__":
  entry.run(main, required=["run_dir"])
