"""Population-based training of a league's players: the worse of a role copies the better.

Source: Jaderberg et al. 2017, "Population Based Training of Neural Networks". Members of a group
are the learning players of one role and race. At intervals a member in the worse half of its group,
by its score against the league's snapshots, gets the weights, the optimizer state and the
hyperparameters of one in the better half. The hyperparameters are then perturbed. Copied weights
are inherited by later snapshots: the change is Lamarckian.

A decision is a function of the seed, the player's number, the number of its decisions so far, and
the scores. One process trains all players.
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from starleague import league
from starleague.learner import evolution
from starleague.learner.loops.options import PopulationOptions
from starleague.learner.weights import Factors

LEARNING_RATE, ENTROPY, PSEUDO_SCALE = NAMES = ("learning_rate", "entropy", "pseudo_scale")
_STREAM = 2  # of random numbers; 0 and 1 are those of the coordinator's matches and resets
_HALF = 0.5


class Member(NamedTuple):
  """The place of a player in its group; part of its checkpoints."""

  hyperparameters: Mapping[str, float]
  decisions: int  # so far, with and without a copy


class Decision(NamedTuple):
  """A player that is copied, and its hyperparameters after exploration."""

  source: str
  hyperparameters: Mapping[str, float]


class Learner(Protocol):
  """What a decision needs of a learning player."""

  name: str
  member: Member | None  # None: the player has no group

  @property
  def policy_steps(self) -> int:
    """Agent steps that the policy has learnt from."""

  def count_decision(self) -> None:
    """Counts a decision."""

  def adopt(self, source: Any, decision: Decision, lead: float) -> None:
    """Copies another player; `lead` is the difference of their scores."""


def groups(players: Sequence[league.Player]) -> dict[str, tuple[str, ...]]:
  """Returns the names of the members of each player's group; players without another have none."""
  found: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
  for player in players:
    if player.learns:
      found[player.kind, player.race].append(player.name)
  return {name: tuple(names) for names in found.values() if len(names) > 1 for name in names}


def first(options: PopulationOptions, seed: int, number: int) -> Member:
  """Returns a new member: hyperparameters drawn from their ranges.

  Args:
    options: of the population.
    seed: of the run.
    number: of the player.
  """
  return Member(evolution.sample(_random(seed, number, 0), options.ranges), 0)


def restored(options: PopulationOptions, values: Mapping[str, Any]) -> Member:
  """Returns the member of a checkpoint; raises ValueError if it is of another population."""
  return Member(evolution.checked(values["hyperparameters"], options.ranges), values["decisions"])


def decide(options: PopulationOptions, seed: int, number: int, name: str,
           members: Mapping[str, Member], scores: Mapping[str, float]) -> Decision | None:
  """Decides whether a player copies another one of its group.

  Args:
    options: of the population.
    seed: of the run.
    number: of the player.
    name: of the player.
    members: of its group, by name.
    scores: of the same players against the league.
  """
  rng = _random(seed, number, 1 + members[name].decisions)
  source = evolution.truncation_selection(
    rng, name, {each: [score] for each, score in scores.items()}, _HALF)
  if source is None:
    return None
  return Decision(source, evolution.perturb(rng, members[source].hyperparameters, options.ranges))


def factors(options: PopulationOptions, member: Member | None) -> Factors:
  """Returns the factors of costs of a player; 1 each for one without a group."""
  values = {} if member is None else member.hyperparameters

  def factor(name: str) -> np.ndarray:
    return np.array(values[name] / options.nominal[name] if name in values else 1.0, np.float32)

  return Factors(factor(ENTROPY), factor(PSEUDO_SCALE))


def exploit(learners: Sequence[Learner], client: league.LeagueClient, options: PopulationOptions,
            seed: int) -> None:
  """Makes the decisions that are due.

  Args:
    learners: of all learning players.
    client: of the league's coordinator.
    options: of the population.
    seed: of the run.
  """
  due = [learner for learner in learners if learner.member is not None
         and learner.policy_steps >= (1 + learner.member.decisions) * options.steps]
  if not due:
    return
  players = client.players()
  known, numbers = groups(players), {player.name: i for i, player in enumerate(players)}
  past = [player.name for player in players if player.kind == league.HISTORICAL]
  if not past:
    return
  by_name = {learner.name: learner for learner in learners}
  for learner in due:
    names = known[learner.name]
    scores = {name: float(np.mean(client.scores(name, past))) for name in names}
    members = {name: member for name in names if (member := by_name[name].member) is not None}
    decision = decide(options, seed, numbers[learner.name], learner.name, members, scores)
    learner.count_decision()
    if decision is not None:
      learner.adopt(by_name[decision.source], decision,
                    scores[decision.source] - scores[learner.name])


def _random(seed: int, number: int, decision: int) -> np.random.Generator:
  return np.random.default_rng((seed, _STREAM, number, decision))
