"""A small ablation, its runs and results of its games."""

from starleague.actor.evaluation import Counts
from starleague.common import results
from starleague.experiments.configs.ablations import Ablation, Arm
from starleague.experiments.run.ablation import arm_runs, games

ABLATION = Ablation(
  title="Half & half", updates=40, seeds=(3, 5), opponents=("rusher", "builder"), games=10,
  match_games=4, opening=2, overrides={"learner.entropy": 0.5, "unroll_length": 8},
  arms=(Arm("noise", "random", {"init": "random"}),
        Arm("plain", "imitation", {"init": "imitation", "actor.pseudo_probability": 0.0}),
        Arm("z", "imitation and z", {"learner.learning_rate": 1e-4}, shows_z=True)))


def make_runs(folder):
  chosen = {"unroll_length": 4, "learner.learning_rate": 1e-2, "learner.batch_size": 16}
  return arm_runs.make_runs(ABLATION, lambda init: {"actor": {"games": 64}}, chosen, folder)


def games_of(runs):
  """Arm i wins 2 + 3 i of 10 games against each script, and 3 of 4 against the arm before it."""
  entrants = games.make_entrants(runs)
  place = {"noise": 0, "plain": 1, "z": 2}
  played = {(entrant.name, opponent): Counts(2 + 3 * place[entrant.run.arm.name], 0,
                                             8 - 3 * place[entrant.run.arm.name])
            for entrant in entrants for opponent in ABLATION.opponents}
  for one, other in games.make_pairs(entrants):
    played[one.name, other.name] = Counts(1, 0, 3)
  return games.AblationGames(entrants, played, {
    entrant.name: float(place[entrant.run.arm.name] + 0.1 * entrant.run.seed)
    for entrant in entrants})


def write_results(runs):
  """The arm `noise` never reaches 50%; `plain` does with seed 3; `z` after two minutes."""
  for run in runs:
    rows = [results.Row(30.0, 1, "total/steps_learnt", 64)]
    score = {"noise": 0.2, "plain": 0.7 if run.seed == 3 else 0.4, "z": 0.6}[run.arm.name]
    for opponent in ABLATION.opponents:
      rows += [results.Row(150.0, 25, f"score/train/{opponent}", score, 0.0, 1.0),
               results.Row(150.0, 25, f"games/{opponent}", 30)]
    run.path.mkdir()
    results.append(run.path / results.FILE_NAME, rows)
