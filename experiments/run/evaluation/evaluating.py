"""The evaluation of a run: games, scores and win rates of its trained and its initial agent."""

import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import ml_collections

from starleague import league
from starleague.actor import evaluation
from starleague.actor.loops import engines
from starleague.actor.loops.compiled_evaluation import DRAWN
from starleague.actor.loops.engines import MakeEvaluation
from starleague.actor.parts import Parts
from starleague.agent import types
from starleague.common import progress, results
from starleague.experiments.run.config import settings
from starleague.experiments.run.config.errors import check_known
from starleague.experiments.run.config.flags import IMITATOR, INITIAL, TRAINED
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents

RANDOM = "random"  # a race that is drawn for each game
# Names of weights in results and in the progress; a player of a league has its own.
_NAMES = {IMITATOR: ("imitation", "imitator"), INITIAL: ("initial", "initial weights"),
          TRAINED: ("eval", "trained agent")}


class Measured(NamedTuple):
  """A fraction of games with its 95% Wilson interval."""

  value: float
  low: float
  high: float


def score_of(counts: evaluation.Counts) -> Measured:
  """Returns the score: wins plus half the draws, over games."""
  points = counts.wins + 0.5 * counts.draws
  return Measured(points / counts.games, *league.wilson_interval(points, counts.games))


def win_rate_of(counts: evaluation.Counts) -> Measured:
  """Returns the win rate: wins over games."""
  return Measured(counts.wins / counts.games, *league.wilson_interval(counts.wins, counts.games))


def points_of(found: Iterable[evaluation.Counts]) -> tuple[list[float], list[int]]:
  """Returns the points, wins plus half the draws, and the games of counts."""
  found = list(found)
  return [counts.wins + 0.5 * counts.draws for counts in found], [counts.games for counts in found]


class Evaluated(NamedTuple):
  """Results of one agent of a run."""

  # "initial": the weights that training starts from; "eval": the trained agent; "imitation"; or a
  # player of a league. Chosen races of both sides follow, as "eval_zerg_random".
  kind: str
  update: int  # learner updates behind its weights
  counts: dict[str, evaluation.Counts]  # by opponent


def require_matches(config: ml_collections.ConfigDict) -> None:
  """Checks that the agents of a run can play each other.

  Raises:
    SettingsError: the run's games are played outside JAX.
  """
  if registry.game_of(config).engine is not engines.COMPILED:
    raise settings.SettingsError(
      "config key 'environment.name': expected a game that is played inside the compiled program, "
      f"such as 'skirmish', for games between agents; found {config.environment.name!r}.")


def opponent_indices(names: Sequence[str], opponents: Sequence[str]) -> list[int]:
  """Returns the indices of scripted players among a run's opponents.

  Raises:
    SettingsError: a name that is not among them, or is there twice.
  """
  check_known("--opponents", names, opponents)
  return [opponents.index(name) for name in names]


def race_indices(names: Sequence[str], parts: Parts) -> tuple[int, int]:
  """Returns the races of the agent and of its opponents, -1 where they are drawn.

  Args:
    names: of both.
    parts: of the run.

  Raises:
    SettingsError: the run's games have no such race.
  """
  # Bots of a game outside JAX have the races of their names.
  allowed = parts.races, () if parts.compiled is None else parts.opponent_races
  known = [[RANDOM, *(types.RACES[race] for race in races)] for races in allowed]
  if len(names) != 2 or any(name not in each for name, each in zip(names, known, strict=True)):
    raise settings.SettingsError(
      f"--races: expected {' or '.join(known[0])}, then {' or '.join(known[1])}, which the run's "
      f"games have; found {','.join(names)!r}.")
  first, second = (-1 if name == RANDOM else types.RACES.index(name) for name in names)
  return first, second


def evaluate_run(make_evaluation: MakeEvaluation, parts: Parts, run_dir: pathlib.Path,
                 opponents: Sequence[int], games: int, seed: int,
                 races: tuple[int, int] = DRAWN, agents: Sequence[str] = (INITIAL, TRAINED),
                 each_match_up: bool = False) -> Iterator[Evaluated]:
  """Plays the games of a run's weights, one after the other; writes the progress.

  Args:
    make_evaluation: makes the games.
    parts: the agent, its games and its opponents.
    run_dir: the run's directory.
    opponents: indices of the scripted players to meet.
    games: against each of them, even.
    seed: of the games.
    races: of the agent and of its opponents; see `race_indices`. A player of a league has its own
      race where that of the agent is drawn.
    agents: which weights play: some of `flags.AGENTS`, and of the learning players and snapshots of
      a league.
    each_match_up: the results of each match-up of races follow those of all games.

  Raises:
    UserError: the run has no such weights.
    CheckpointDamagedError, CheckpointMismatchError: the weights cannot be used.
  """
  played, plays = len(opponents) * games, {}
  for number, (agent, saved) in enumerate(
      [(agent, saved_agents.find(parts, run_dir, agent)) for agent in agents]):
    kind, detail = _NAMES.get(agent, (agent, agent))
    params, update = saved_agents.read(parts, saved)
    own = races if saved.race is None or races[0] >= 0 else (saved.race, races[1])
    if own not in plays:
      plays[own] = make_evaluation(parts, opponents, games, seed, own)
    report = _reporter(run_dir, number * played, len(agents) * played, detail)
    report(0)
    games_of = plays[own](params, report)
    whole = kind if races == DRAWN else _kind_of(kind, own)
    yield Evaluated(whole, update, evaluation.count_by_name(games_of, parts.opponents))
    for pair, found in evaluation.match_ups(games_of).items() if each_match_up else ():
      if pair != own:
        yield Evaluated(_kind_of(kind, pair), update,
                        evaluation.count_by_name(found, parts.opponents))


def _kind_of(kind: str, races: tuple[int, int]) -> str:
  return "_".join([kind, *(RANDOM if race < 0 else types.RACES[race] for race in races)])


def _reporter(run_dir: pathlib.Path, before: int, total: int,
              detail: str) -> Callable[[int], None]:
  def report(finished: int) -> None:
    progress.write(run_dir, progress.Progress(
      progress.EVALUATION, before + finished, total, "games", detail))

  return report


def result_rows(counts: Mapping[str, evaluation.Counts], kind: str, seconds: float,
                update: int) -> list[results.Row]:
  """Returns scores and win rates by opponent as results rows."""
  return [
    results.Row(seconds, update, f"{tag}/{kind}/{name}", *measure(found))
    for name, found in counts.items()
    for tag, measure in (("score", score_of), ("win_rate", win_rate_of))]


def result_line(counts: evaluation.Counts, kind: str, update: int, opponent: str) -> str:
  """Returns the result against one opponent as a line of key=value."""
  score, rate = score_of(counts), win_rate_of(counts)
  return (f"agent={kind} update={update} opponent={opponent} games={counts.games} "
          f"wins={counts.wins} draws={counts.draws} losses={counts.losses} "
          f"score={score.value:.3f} score_interval=[{score.low:.3f},{score.high:.3f}] "
          f"win_rate={rate.value:.3f} win_rate_interval=[{rate.low:.3f},{rate.high:.3f}]")
