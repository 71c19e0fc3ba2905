"""The players of a league, and the rules for their snapshots and resets.

A league has three kinds of learning player, and their frozen snapshots (Vinyals et al. 2019,
Methods). Main agents are the purpose of the league. Main exploiters find weaknesses of the main
agents, league exploiters those of all players. A snapshot never changes and is never removed.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from starleague.common.errors import UserError

MAIN = "main"
MAIN_EXPLOITER = "main_exploiter"
LEAGUE_EXPLOITER = "league_exploiter"
HISTORICAL = "historical"
SCRIPTED = "scripted"
LEARNING_KINDS = (MAIN, MAIN_EXPLOITER, LEAGUE_EXPLOITER)
EXPLOITERS = (MAIN_EXPLOITER, LEAGUE_EXPLOITER)
KINDS = (*LEARNING_KINDS, HISTORICAL, SCRIPTED)
MOST_STEPS = 10 ** 18  # of a player; SQLite stores integers below 2 ** 63


class LeagueError(UserError, ValueError):
  """The league refuses a request, a player or a composition; nothing is changed."""


class UnknownPlayerError(UserError, KeyError):
  """The league does not have a player, an order or a game of this name."""

  __str__ = Exception.__str__  # a KeyError would quote its message


@dataclasses.dataclass(frozen=True)
class Player:
  """A player of a league.

  Attributes:
    name: unique in its league.
    kind: one of KINDS.
    race: the race that it plays.
    parent: for a historical player, the name of the learning player whose snapshot it is.
    parent_kind: for a historical player, the kind of its parent.
    steps: for a historical player, the agent steps that its parent had learnt from.
  """

  name: str
  kind: str
  race: str = ""
  parent: str | None = None
  parent_kind: str | None = None
  steps: int = 0

  def __post_init__(self):
    if not self.name:
      raise ValueError("A player needs a name, found an empty one.")
    if self.kind not in KINDS:
      raise ValueError(f"Player {self.name}: kind is {self.kind!r}, expected one of {KINDS}.")
    if self.kind == HISTORICAL and (not self.parent or self.parent_kind not in LEARNING_KINDS):
      raise ValueError(
        f"Player {self.name} is historical: it needs a parent and the parent's kind, found "
        f"{self.parent!r} of kind {self.parent_kind!r}.")

  @property
  def learns(self) -> bool:
    """Whether the player has a learner."""
    return self.kind in LEARNING_KINDS


class SnapshotRule(NamedTuple):
  """The condition for a learning player's snapshot, and the probability of a reset after it.

  Attributes:
    minimum_steps: minimum number of agent steps between two snapshots.
    score: after them, a snapshot is due once the score against every player of the reference set
      is above this.
    timeout_steps: agent steps since the last snapshot after which one is always due.
    reset_probability: of a reset to the supervised parameters after a snapshot.
  """

  minimum_steps: float
  score: float
  timeout_steps: float
  reset_probability: float


class SnapshotRules(NamedTuple):
  """A rule for each kind of learning player."""

  main: SnapshotRule
  main_exploiter: SnapshotRule
  league_exploiter: SnapshotRule

  def of(self, player: Player) -> SnapshotRule:
    """Returns the rule of a learning player; raises ValueError for others, which never change."""
    if not player.learns:
      raise ValueError(f"Player {player.name} is {player.kind}: it does not learn and has no "
                       f"snapshots. Expected one of {LEARNING_KINDS}.")
    return getattr(self, player.kind)


def pseudocode_rules(minimum_steps: float = 2e9, timeout_steps: float = 4e9,
                     score: float = 0.7) -> SnapshotRules:
  """Returns the rules of the published pseudocode, the default."""
  def rule(reset_probability):
    return SnapshotRule(minimum_steps, score, timeout_steps, reset_probability)
  return SnapshotRules(main=rule(0.0), main_exploiter=rule(1.0), league_exploiter=rule(0.25))


def methods_rules(steps: float = 2e9, exploiter_timeout_steps: float = 4e9,
                  score: float = 0.7) -> SnapshotRules:
  """Returns the rules of the Methods text, which differ from the pseudocode.

  A snapshot of a main agent is due every `steps`. Those of exploiters are due as soon as they win,
  or after `steps` (league exploiters) or `exploiter_timeout_steps` (main exploiters).
  """
  return SnapshotRules(
    main=SnapshotRule(steps, score, steps, 0.0),
    main_exploiter=SnapshotRule(0, score, exploiter_timeout_steps, 1.0),
    league_exploiter=SnapshotRule(0, score, steps, 0.25))


def snapshot_due(rule: SnapshotRule, steps_since_snapshot: float,
                 reference_scores: Sequence[float] | np.ndarray) -> bool:
  """Returns whether a snapshot of a player is due (Vinyals et al. 2019, pseudocode).

  Args:
    rule: the player's.
    steps_since_snapshot: agent steps learnt from since its last snapshot.
    reference_scores: [N] scores against its `reference_set`. If it is empty, only the timeout
      applies.
  """
  if steps_since_snapshot < rule.minimum_steps:
    return False
  rates = np.asarray(reference_scores, np.float64)
  return bool((rates.size > 0 and rates.min(initial=1.0) > rule.score)
              or steps_since_snapshot > rule.timeout_steps)


def resets(rule: SnapshotRule, uniform: float) -> bool:
  """Returns whether a player is reset after its snapshot; `uniform` is a draw from [0, 1)."""
  return uniform < rule.reset_probability


def reference_set(player: Player, players: Iterable[Player]) -> list[Player]:
  """Returns the players that a player must beat for an early snapshot.

  For main exploiters these are the live main agents, for other players all historical players.
  """
  kind = MAIN if player.kind == MAIN_EXPLOITER else HISTORICAL
  return [other for other in players if other.kind == kind]


def snapshot(player: Player, number: int, steps: int) -> Player:
  """Returns the `number`-th snapshot of a learning player, at `steps` agent steps."""
  if not player.learns:
    raise ValueError(
      f"Player {player.name} is {player.kind}: only {LEARNING_KINDS} have snapshots.")
  return Player(name=f"{player.name}-{number:04d}", kind=HISTORICAL, race=player.race,
                parent=player.name, parent_kind=player.kind, steps=steps)


def is_first_snapshot(name: str) -> bool:
  """Returns whether a historical player is snapshot number 0: of the initial parameters."""
  return name.endswith("-0000")


def frozen_main_agent(race: str, number: int = 0) -> Player:
  """Returns the only snapshot of a main agent that does not learn in its league."""
  return snapshot(Player(name=f"{race}-{MAIN}-{number}", kind=MAIN, race=race), 0, 0)


def initial_players(races: Sequence[str] = ("protoss", "zerg", "terran"), main_agents: int = 1,
                    main_exploiters: int = 1, league_exploiters: int = 2,
                    frozen_main_agents: int = 0) -> list[Player]:
  """Returns the players of a new league: learners for each race, snapshots of supervised agents.

  The defaults are the published league: twelve learners and three snapshots.

  Args:
    races: of the players.
    main_agents, main_exploiters, league_exploiters: learning players of each race.
    frozen_main_agents: of each race, main agents of another league that do not learn here.
  """
  players = []
  for race in races:
    for kind, count in ((MAIN, main_agents), (MAIN_EXPLOITER, main_exploiters),
                        (LEAGUE_EXPLOITER, league_exploiters)):
      for i in range(count):
        player = Player(name=f"{race}-{kind}-{i}", kind=kind, race=race)
        players.append(player)
        if kind == MAIN:
          players.append(snapshot(player, 0, 0))
    players += [frozen_main_agent(race, main_agents + i) for i in range(frozen_main_agents)]
  return players


def check_composition(league: Iterable[Player], initial: Sequence[Player]) -> None:
  """Checks the players that a league would have.

  Args:
    league: all of them.
    initial: those that it starts with.

  Raises:
    LeagueError: two initial players have one name, there is no main agent, or main exploiters have
      none that learns.
  """
  names, league = [player.name for player in initial], list(league)
  repeated = sorted({name for name in names if names.count(name) > 1})
  if repeated:
    raise LeagueError(f"the composition has more than one player named {', '.join(repeated)}. Give "
                      "every player its own name.")
  live = any(player.kind == MAIN for player in league)
  frozen = any(player.parent_kind == MAIN for player in league)
  if initial and not live and not frozen:
    raise LeagueError(f"the composition has {len(names)} players and no main agent: "
                      f"{', '.join(names)}. Add one.")
  exploiters = [player.name for player in league if player.kind == MAIN_EXPLOITER]
  if exploiters and not live:
    raise LeagueError(f"{', '.join(exploiters)} need a main agent that learns. Add one, or make "
                      "league exploiters of them.")
