"""The games of an ablation's trained agents: against scripted players, and of arms against arms."""

import itertools
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.actor import evaluation
from starleague.actor.evaluation import Counts
from starleague.actor.loops import compiled_evaluation
from starleague.agent import types
from starleague.common import files
from starleague.data.z import conditioning, openings
from starleague.data.z.conditioning import Conditioning
from starleague.experiments.configs.ablations import Ablation
from starleague.experiments.run.ablation import behaviours
from starleague.experiments.run.ablation.arm_runs import Run
from starleague.experiments.run.config import compositions, settings
from starleague.experiments.run.evaluation import evaluating, robustness
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents, z_source

MEASURED = "games.json"  # results of all games so far, in the ablation's folder
_PARTS = len(types.PSEUDO_REWARDS)  # of z
Report = Callable[[int, str], object]  # (games that have ended, entrants that play)


class Entrant(NamedTuple):
  """A trained agent under one condition."""

  run: Run
  shows_z: bool

  @property
  def kind(self) -> str:
    """The arm and the condition: a row of the tables."""
    return f"{self.run.arm.name}, z shown" if self.shows_z else self.run.arm.name

  @property
  def name(self) -> str:
    """Unique among the entrants."""
    return f"{self.kind}, seed {self.run.seed}"


class AblationGames(NamedTuple):
  """Results of all games."""

  entrants: tuple[Entrant, ...]
  played: dict[tuple[str, str], Counts]  # of an entrant against a scripted player or an entrant
  entropy: dict[str, float]  # of openings, by entrant, bits
  # Of entrants whose run is a league: their counts against each past self, and those of each
  # exploiter against them.
  past: dict[str, tuple[Counts, ...]] = {}
  exploited: dict[str, tuple[Counts, ...]] = {}
  # Of entrants whose league is varied: of its main agents, and their games against each other and
  # exploiters, for each start of these.
  variety: dict[str, behaviours.Variety] = {}
  mixtures: dict[str, tuple[dict[tuple[str, str], Counts], ...]] = {}


def make_entrants(runs: Sequence[Run]) -> tuple[Entrant, ...]:
  """Returns every run without z, and the runs of arms that show z also with it."""
  return tuple(Entrant(run, shows_z) for run in runs
               for shows_z in ((False, True) if run.arm.shows_z else (False,)))


def make_pairs(entrants: Sequence[Entrant]) -> list[tuple[Entrant, Entrant]]:
  """Returns the pairs that play each other: different arms with the same seed."""
  return [(one, other) for one, other in itertools.combinations(entrants, 2)
          if one.run.seed == other.run.seed and one.run.arm.name != other.run.arm.name]


def count_games(ablation: Ablation, runs: Sequence[Run]) -> int:
  """Returns the number of all games."""
  entrants = make_entrants(runs)
  opponents = len(make_pairs(entrants))
  evaluated = len(entrants)
  for run in runs if ablation.league else ():
    opponents += len(robustness.past_selves(run.path))
    opponents += 2 * _exploit_pairs(ablation, run)
    evaluated += len(compositions.main_agents(run.config)) if ablation.varied else 0
  return (evaluated * len(ablation.opponents) * ablation.games
          + opponents * ablation.match_games)


def _exploit_pairs(ablation: Ablation, run: Run) -> int:
  """Returns the pairs that play after one training of exploiters against the agents of a run."""
  if not ablation.varied:
    return ablation.exploiters
  return robustness.mixture_pairs(
    ablation.exploiters, len(compositions.main_agents(run.config)))


class MatchRunner:
  """Plays entrants with two compiled programs. Equal weights play equal games."""

  def __init__(self, ablation: Ablation, runs: Sequence[Run]):
    """Compiles nothing yet.

    Raises:
      SettingsError: the runs differ in their agent or their game, or an opponent is not the runs'.
    """
    kinds = {(run.config.preset, run.config.agent, run.config.environment.tier,
              run.config.environment.races, run.config.environment.opponents) for run in runs}
    if len(kinds) > 1:
      raise settings.SettingsError(
        "an ablation's arms must have one preset, agent, environment.tier, .races and .opponents, "
        f"found {sorted(kinds)}.")
    self._ablation, self._runs = ablation, runs
    self._parts = registry.make_parts(runs[0].config)
    opponents = evaluating.opponent_indices(ablation.opponents, self._parts.opponents)
    self._evaluator = compiled_evaluation.make_evaluator(self._parts, opponents, ablation.games)
    self._match = compiled_evaluation.make_match(self._parts, ablation.match_games)

  def evaluate(self, entrant: Entrant, on_games: Callable[[int], object]) -> dict[str, Any]:
    """Returns an entrant's counts by scripted player, and the entropy of its openings."""
    seed = entrant.run.seed
    active = np.full(_PARTS, entrant.shows_z, np.float32)
    shown = self._conditioning(entrant)._replace(active=active)
    played = evaluation.play(
      self._evaluator, self._weights(entrant), jax.random.key(seed), shown,
      on_games=on_games)
    return {
      "counts": {self._parts.opponents[i]: list(counts)
                 for i, counts in evaluation.count(played).items()},
      "entropy": openings.opening_entropy(
        played.executed.build_order[:, 0], self._ablation.opening)}

  def match(self, pair: tuple[Entrant, Entrant],
            on_games: Callable[[int], object]) -> dict[str, Any]:
    """Returns the counts of the first entrant against the second."""
    seed = pair[0].run.seed
    shown = np.array([[entrant.shows_z] * _PARTS for entrant in pair], np.float32)
    played = evaluation.play(
      self._match, evaluation.pair(*map(self._weights, pair)), jax.random.key(seed),
      self._conditioning(pair[0])._replace(active=shown), on_games=on_games)
    [counts] = evaluation.count(played).values()
    return {"counts": list(counts)}

  def past(self, run: Run, on_games: Callable[[int], object]) -> dict[str, Any]:
    """Returns the counts of a league's main agent against its past selves."""
    played = robustness.play_past(
      self._match, self._parts, run.path, jax.random.key(run.seed), self._unconditional, on_games)
    return {"counts": {name: list(counts) for name, counts in played.items()}}

  def exploit(self, run: Run, on_games: Callable[[int], object]) -> dict[str, Any]:
    """Returns the counts of exploiters against their frozen agent."""
    played = robustness.play_exploiters(
      self._match, self._parts, run.config, run.path, jax.random.key(run.seed), self._unconditional,
      on_games)
    return {"counts": {name: list(counts) for name, counts in played.items()}}

  def exploit_mixture(self, run: Run, on_games: Callable[[int], object]) -> dict[str, Any]:
    """Returns the counts of exploiters and their frozen agents: [one, other, counts]."""
    played = robustness.play_mixture(
      self._match, self._parts, run.config, run.path, jax.random.key(run.seed), self._unconditional,
      on_games)
    return {"pairs": [[*names, list(counts)] for names, counts in played.items()]}

  def variety(self, run: Run, on_games: Callable[[int], object]) -> dict[str, Any]:
    """Returns `behaviours.describe` of each main agent of a league."""
    found: dict[str, Any] = {}
    games = len(self._evaluator.opponents)
    for number, name in enumerate(compositions.main_agents(run.config)):
      def ended(done: int, before: int = number * games) -> object:
        return on_games(before + done)

      params, _ = saved_agents.load(self._parts, run.path, name)
      shown = conditioning.with_races(
        self._unconditional, [saved_agents.race_of(name)] * 2, 1 + len(self._parts.opponents))
      found[name] = behaviours.describe(evaluation.play(
        self._evaluator, params, jax.random.key(run.seed), shown, on_games=ended))
    return {"agents": found}

  @property
  def _unconditional(self) -> Conditioning:
    return conditioning.unconditional(len(self._parts.maps), self._parts.mmr)

  def _weights(self, entrant: Entrant) -> Any:
    return saved_agents.load(self._parts, entrant.run.path, saved_agents.TRAINED)[0]

  def _conditioning(self, entrant: Entrant) -> Conditioning:
    """Returns z of the seed's library, where one of its runs has a library.

    The agent of a league has one race: it plays mirror matches.
    """
    found = self._unconditional
    for run in self._runs:
      path = z_source.library_path(run.config, run.path)
      if run.seed == entrant.run.seed and path is not None:
        found = z_source.from_library(self._parts, run.config, path)
        break
    race = saved_agents.find(self._parts, entrant.run.path, saved_agents.TRAINED).race
    if race is None:
      return found
    return conditioning.with_races(found, (race, race), 1 + len(self._parts.opponents))


def play_games(ablation: Ablation, runs: Sequence[Run], exploits: Sequence[Run],
               folder: pathlib.Path, report: Report) -> AblationGames:
  """Plays all games; results of earlier calls with the same weights and settings are kept.

  Args:
    ablation: its opponents and numbers of games.
    runs: trained.
    exploits: the leagues that exploit them, trained.
    folder: where results are stored after each entrant and pair.
    report: called while games end.
  """
  player, entrants = MatchRunner(ablation, runs), make_entrants(runs)
  path, stored = folder / MEASURED, _load(folder / MEASURED)
  found, ended = {}, 0
  sets = [*_sets(ablation, runs, player), *_robustness_sets(ablation, runs, exploits, player),
          *_variety_sets(ablation, runs, player)]
  for name, games, key, play in sets:
    if stored.get(name, {}).get("key") != key:
      stored[name] = {"key": key, **play(
        lambda done, name=name, before=ended: report(before + done, name))}
      with files.replacing(path) as file:
        json.dump(stored, file, indent=1)
    found[name] = stored[name]
    ended += games
    report(ended, name)
  played, entropy = {}, {}
  for entrant in entrants:
    entropy[entrant.name] = float(found[entrant.name]["entropy"])
    for opponent, counts in found[entrant.name]["counts"].items():
      played[entrant.name, opponent] = Counts(*counts)
  for one, other in make_pairs(entrants):
    played[one.name, other.name] = Counts(*found[_pair_name(one, other)]["counts"])

  def robust(names_of: Callable[[Run], Sequence[str]]) -> dict[str, tuple[Counts, ...]]:
    each = {entrant.name: tuple(
      Counts(*counts) for name in names_of(entrant.run) if name in found
      for counts in found[name]["counts"].values()) for entrant in entrants}
    return {name: counts for name, counts in each.items() if counts}

  made = AblationGames(entrants, played, entropy, past=robust(lambda run: [_past_name(run)]))
  if not ablation.varied:
    return made._replace(exploited=robust(_exploited_names))
  of_agent = {entrant.name: entrant.run for entrant in entrants}
  return made._replace(
    variety={name: behaviours.measure(found[_variety_name(run)]["agents"])
             for name, run in of_agent.items()},
    mixtures={name: tuple(
      {(one, other): Counts(*counts) for one, other, counts in found[games]["pairs"]}
      for games in _exploited_names(run) if games in found) for name, run in of_agent.items()})


def _load(path: pathlib.Path) -> dict[str, Any]:
  """Returns the stored results; none if there are none.

  Raises:
    SettingsError: the file is damaged.
  """
  if not path.exists():
    return {}
  try:
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {name: dict(value) for name, value in stored.items()}
  except (ValueError, TypeError, AttributeError) as error:
    raise settings.SettingsError(
      f"{path} is not a file of an ablation's games: {error}; remove it") from error


def _pair_name(one: Entrant, other: Entrant) -> str:
  return f"{one.name} against {other.name}"


def _sets(ablation: Ablation, runs: Sequence[Run],
          player: MatchRunner) -> Iterator[tuple[str, int, list[Any], Callable]]:
  """Yields the sets of games: name, number, what determines their results, function that plays."""
  weights = {run.path: run.weights for run in runs}
  entrants = make_entrants(runs)
  for entrant in entrants:
    games = ablation.games * len(ablation.opponents)
    key = [weights[entrant.run.path], list(ablation.opponents), ablation.games, ablation.opening]
    yield (entrant.name, games, key,
           lambda on_games, entrant=entrant: player.evaluate(entrant, on_games))
  for pair in make_pairs(entrants):
    yield (_pair_name(*pair), ablation.match_games,
           [*(weights[entrant.run.path] for entrant in pair), ablation.match_games],
           lambda on_games, pair=pair: player.match(pair, on_games))


def _past_name(run: Run) -> str:
  return f"{Entrant(run, False).name} against its past"


def _exploited_names(run: Run) -> list[str]:
  """Returns the names of the games against exploiters from the imitator, and from the past."""
  name = f"{Entrant(run, False).name} against exploiters"
  return [name, f"{name} from its past"]


def _robustness_sets(ablation: Ablation, runs: Sequence[Run], exploits: Sequence[Run],
                     player: MatchRunner) -> Iterator[tuple[str, int, list[Any], Callable]]:
  """Yields the further sets of games of leagues; see `_sets`."""
  for run in runs if ablation.league else ():
    past = robustness.past_selves(run.path)
    yield (_past_name(run), len(past) * ablation.match_games,
           [run.weights, past, ablation.match_games],
           lambda on_games, run=run: player.past(run, on_games))
  for run in exploits:
    assert run.target is not None, "exploiters have an agent to exploit"
    play = player.exploit_mixture if ablation.varied else player.exploit
    # Exploiters of agents that are trained further have equal updates, but another folder.
    yield (_exploited_names(run)[run.from_past],
           _exploit_pairs(ablation, run.target) * ablation.match_games,
           [run.path.name, run.weights, ablation.exploiters, ablation.match_games],
           lambda on_games, run=run, play=play: play(run, on_games))


def _variety_name(run: Run) -> str:
  return f"main agents of {Entrant(run, False).name}"


def _variety_sets(ablation: Ablation, runs: Sequence[Run],
                  player: MatchRunner) -> Iterator[tuple[str, int, list[Any], Callable]]:
  """Yields the games of all main agents of varied leagues; see `_sets`."""
  for run in runs if ablation.varied else ():
    agents = len(compositions.main_agents(run.config))
    yield (_variety_name(run), agents * len(ablation.opponents) * ablation.games,
           [run.weights, list(ablation.opponents), ablation.games],
           lambda on_games, run=run: player.variety(run, on_games))
