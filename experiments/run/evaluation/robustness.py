"""How robust an agent is: games against fresh exploiters and against its own past.

Exploiters are trained in a league of their own, in which they alone learn and the agent is frozen
(Vinyals et al. 2019, Figure 3).
"""

import itertools
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import ml_collections
import numpy as np

from starleague import league
from starleague.actor import evaluation, goals
from starleague.actor.evaluation import Counts
from starleague.actor.loops import weights
from starleague.actor.parts import Parts
from starleague.agent import types
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.data.z.conditioning import Conditioning, with_races
from starleague.experiments.run.config import compositions, settings
from starleague.experiments.run.evaluation import evaluating
from starleague.experiments.run.parts import saved_agents, z_source
from starleague.league import players
from starleague.league.run_copy import RunCopy

_NEVER = 1e18  # agent steps to a snapshot: exploiters stay fresh, and meet nobody but the agent
_UNLIMITED = 1e6  # seconds: updates are the budget
OnGames = Callable[[int], object]  # called with the games that have ended
_Name = TypeVar("_Name")  # of a player, or of two


def exploiting(config: ml_collections.ConfigDict, parts: Parts, league: bool,
               exploiters: int, updates: int, minimax: float = 0.0, pursue: bool = False,
               mixture: bool = False) -> ml_collections.ConfigDict:
  """Returns the config of the league that exploits an agent, or several agents of a league.

  Args:
    config: of the agent's run.
    parts: of the agent's run.
    league: whether the run is a league; the agent is its first main agent.
    exploiters: of each race that the agent plays.
    updates: of all exploiters together.
    minimax: factor of exploiters' reward for a fall of the agent's value; 0: none.
    pursue: whether exploiters play for z, drawn by the scores of similar z.
    mixture: whether exploiters meet all main agents of the league that have the first one's race.

  Raises:
    SettingsError: the games of the run are played outside JAX, the agent starts from random
      weights, or the updates end within the warm-up of the value functions.
  """
  evaluating.require_matches(config)
  if config.init == settings.RANDOM:
    raise settings.SettingsError(
      f"config key 'init' of the agent's run must be {settings.IMITATION!r} or "
      f"{settings.PRETRAINED!r}, found {config.init!r}: exploiters start from the weights that its "
      "training began with.")
  mains = compositions.first_main_agents(config)
  races = ([player.race for player in mains[:1]] if league
           else [types.RACES[race] for race in parts.races])
  warm_up = len(races) * exploiters * config.learner.value_warm_up
  if updates <= warm_up:
    raise settings.SettingsError(
      f"{updates} updates of all exploiters together must be above {warm_up}: in the first "
      f"{config.learner.value_warm_up} of each only the value functions learn "
      "(learner.value_warm_up), so that all would play as the weights that they start from.")
  frozen = len(mains) if mixture else 1
  return settings.complete(config.to_dict(), {
    "league.composition": ",".join(f"{race}:0:0:{exploiters}:{frozen}" for race in races),
    "league.snapshot_steps": _NEVER, "league.timeout_steps": _NEVER, "league.evaluators": 0,
    "league.population": "", "league.scripted": "",
    "league.seconds": _UNLIMITED, "league.exploiter_minimax": minimax,
    "league.exploiter_goals": pursue, "league.objectives": "", "league.own_matchmaking": "",
    "league.snapshots_z": False, "league.main_updates": 0, "learner.updates": updates,
    "learner.stages": 1,
    # The agent's run need not be a league, whose chunks divide the actors' batches.
    "league.chunk": math.gcd(config.league.chunk, config.actor.inference_batch),
    # One process counts the updates of all exploiters.
    "cluster.learners": settings.ONE, "cluster.learner_hosts": 1})


def freeze(parts: Parts, source: pathlib.Path, config: ml_collections.ConfigDict,
           run_dir: pathlib.Path, start: str | None = None) -> None:
  """Puts an agent into the league that exploits it, with the weights that exploiters start from.

  A league of several frozen agents of one race gets the main agents of the source.

  Args:
    parts: of the agent's run.
    source: the agent's run.
    config: from `exploiting`.
    run_dir: of the league that exploits it; an agent that is frozen there already must be this one.
    start: a snapshot of the source, which exploiters start from; None: the weights that the agent's
      training began with.

  Raises:
    UserError: the source has no trained agent, or no such weights; the league exploits other
      weights.
  """
  frozen = [player for player in _players(config) if not player.learns]
  agents = [saved_agents.TRAINED] * len(frozen)
  if len(frozen) > len({player.race for player in frozen}):
    agents = saved_agents.main_agents(source)
  for player, agent in zip(frozen, agents, strict=True):
    _freeze_agent(parts, source, agent, run_dir, player.name)
  copy = (saved_agents.copy_imitator if config.init == settings.IMITATION
          else saved_agents.copy_initial)
  copy(source, run_dir, None if start is None else run_files.snapshot_path(source, start))


def _freeze_agent(parts: Parts, source: pathlib.Path, agent: str, run_dir: pathlib.Path,
                  name: str) -> None:
  """Saves the weights of an agent under a frozen player's name, or checks those saved before."""
  params, update = saved_agents.load(parts, source, agent)
  path = run_files.snapshot_path(run_dir, name)
  if not path.exists():
    checkpoints.save_params(
      path, params, parts.config, extra={"agent": f"update {update} of {source.resolve()}"})
    return
  # The weights decide: unlike the path they stay the same if the source's folder is moved.
  if not jax.tree.all(jax.tree.map(
      np.array_equal, checkpoints.load_params(path, parts.config), params)):
    found = checkpoints.read_manifest(path)["extra"].get("agent", "an agent")
    raise UserError(
      f"{run_dir} exploits {found}, whose weights are not those that update {update} of "
      f"{source.resolve()} has now: choose another name for the exploiters' run, or remove "
      "that one")


def past_selves(run_dir: pathlib.Path) -> list[str]:
  """Returns the snapshots of a league's first main agent, oldest first; none of a run's agent."""
  main = saved_agents.main_agent(run_dir)
  if main is None:
    return []
  folder = run_files.snapshot_path(run_dir, main).parent
  # The first one, the imitator, is stored once for all players.
  return sorted({f"{main}-0000", *(path.name for path in folder.glob(f"{main}-*"))})


def middle_self(run_dir: pathlib.Path) -> str | None:
  """Returns the middle one of the main agent's past selves; None if that is its imitator."""
  past = past_selves(run_dir)
  middle = past[len(past) // 2] if past else None
  return None if middle is None or players.is_first_snapshot(middle) else middle


def play_past(match: evaluation.Evaluator, parts: Parts, run_dir: pathlib.Path,
              key: jax.Array, conditioning: Conditioning,
              on_games: OnGames | None = None) -> dict[str, Counts]:
  """Plays the main agent of a league against its past selves.

  Args:
    match: from `evaluation.make_match`.
    parts: of the league.
    run_dir: of the league.
    key: random key; equal keys give equal games.
    conditioning: of both players; the agent's race takes the place of its races.
    on_games: called with the games that have ended.

  Returns:
    The agent's counts by snapshot.
  """
  agent, _ = saved_agents.load(parts, run_dir, saved_agents.TRAINED)
  return _play(match, {
    name: (agent, weights.load_snapshot(parts.config, RunCopy(run_dir), name))
    for name in past_selves(run_dir)}, key,
    lambda name: with_races(conditioning, [saved_agents.race_of(name)] * 2), on_games)


def play_exploiters(match: evaluation.Evaluator, parts: Parts,
                    config: ml_collections.ConfigDict, run_dir: pathlib.Path, key: jax.Array,
                    conditioning: Conditioning,
                    on_games: OnGames | None = None) -> dict[str, Counts]:
  """Plays exploiters against their frozen agent; see `play_past`.

  Args:
    match, parts, key, on_games: see `play_past`.
    conditioning: of both players; their own races take the place of its races, and the z of goals
      that of its z.
    config: from `exploiting`.
    run_dir: of the league that exploits the agent.

  Returns:
    The exploiters' counts by name.
  """
  found = _players(config)
  frozen = [player.name for player in found if not player.learns]
  agent = weights.load_snapshot(parts.config, RunCopy(run_dir), frozen[0])
  # An agent of several races is frozen once for each, and exploiters meet all of them.
  away = saved_agents.race_of(frozen[0]) if len(frozen) == 1 else -1

  def conditioning_of(name: str) -> Conditioning:
    shown = conditioning
    if config.league.exploiter_goals:
      shown = _pursuing(parts, config, run_dir, name)
    return with_races(shown, (saved_agents.race_of(name), away))

  return _play(match, {name: (params, agent) for name, params in _exploiters(
    parts, config, run_dir).items()}, key, conditioning_of, on_games)


def play_mixture(match: evaluation.Evaluator, parts: Parts,
                 config: ml_collections.ConfigDict, run_dir: pathlib.Path, key: jax.Array,
                 conditioning: Conditioning,
                 on_games: OnGames | None = None) -> dict[tuple[str, str], Counts]:
  """Plays exploiters against each of several frozen agents, and these against each other.

  Args:
    match, parts, config, run_dir, key, on_games: see `play_exploiters`.
    conditioning: of both players; the race of all agents takes the place of its races.

  Returns:
    The counts of the first player of each pair, by both names.
  """
  frozen = {name: weights.load_snapshot(parts.config, RunCopy(run_dir), name)
            for name in sorted(player.name for player in _players(config) if not player.learns)}
  pairs = [*itertools.product(_exploiters(parts, config, run_dir).items(), frozen.items()),
           *itertools.combinations(frozen.items(), 2)]
  shown = with_races(conditioning, [saved_agents.race_of(next(iter(frozen)))] * 2)
  return _play(match, {(one, other): (a, b) for (one, a), (other, b) in pairs}, key,
               lambda names: shown, on_games)


def _exploiters(parts: Parts, config: ml_collections.ConfigDict,
                run_dir: pathlib.Path) -> dict[str, Any]:
  """Returns the weights of the exploiters of a league by name."""
  return {player.name: checkpoints.load_params(
    run_files.learner_dir(run_dir, player.name) / run_files.CHECKPOINTS, parts.config)
    for player in _players(config) if player.learns}


def mixture_pairs(exploiters: int, frozen: int) -> int:
  """Returns the number of pairs of `play_mixture`."""
  return exploiters * frozen + frozen * (frozen - 1) // 2


def mixture_exploitability(played: Mapping[tuple[str, str], Counts]) -> float:
  """Returns the best score of an exploiter against the Nash mixture of the frozen agents.

  The mixture is the Nash average of the frozen agents (Balduzzi et al. 2018), from their games
  against each other.

  Args:
    played: from `play_mixture`.
  """
  scores = {pair: (counts.wins + 0.5 * counts.draws) / counts.games
            for pair, counts in played.items()}
  frozen = sorted({other for _, other in scores})
  payoff = np.full((len(frozen), len(frozen)), 0.5)
  for (i, one), (j, other) in itertools.combinations(enumerate(frozen), 2):
    payoff[i, j], payoff[j, i] = scores[one, other], 1 - scores[one, other]
  mixture = league.nash_averaging(payoff).strategy
  return max(float(np.dot(mixture, [scores[name, other] for other in frozen]))
             for name, _ in scores if name not in frozen)


def _pursuing(parts: Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path,
              name: str) -> Conditioning:
  """Returns the conditioning of an exploiter that draws its goals by its training games."""
  found = z_source.of_games(parts, config, run_dir)
  assert found is not None, "a league has the z of imitated games, of a library, or none"
  weights = goals.learnt(found, run_files.learner_dir(run_dir, name))
  shown = np.sign(found.active)
  return found._replace(
    active=np.stack([shown, np.zeros_like(shown)]),
    goals=np.stack([np.zeros_like(weights), weights]), goal=np.array([[1, 0]], np.int32))


def _players(config: ml_collections.ConfigDict) -> list[players.Player]:
  return compositions.parse(config.league.composition.split(","))


def _play(match: evaluation.Evaluator, pairs: Mapping[_Name, tuple[Any, Any]], key: jax.Array,
          conditioning_of: Callable[[_Name], Conditioning],
          on_games: OnGames | None) -> dict[_Name, Counts]:
  """Plays pairs of weights, by name; returns the counts of the first of each pair."""
  found, ended = {}, 0
  for name, pair in pairs.items():
    report = None if on_games is None else lambda done, before=ended: on_games(before + done)
    played = evaluation.play(match, evaluation.pair(*pair), key,
                             conditioning_of(name), on_games=report)
    [found[name]] = evaluation.count(played).values()
    ended += found[name].games
  return found
