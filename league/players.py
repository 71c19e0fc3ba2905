"""The players of a league, and when they leave a copy of themselves and start anew.

A league holds three kinds of learning player and the frozen copies they leave (Vinyals et al. 2019,
Methods). Main agents are what the league is for; main exploiters look for weaknesses of the main
agents, league exploiters for weaknesses of everybody. A copy never changes and never leaves.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

MAIN = "main"
MAIN_EXPLOITER = "main_exploiter"
LEAGUE_EXPLOITER = "league_exploiter"
HISTORICAL = "historical"
SCRIPTED = "scripted"
LEARNING_KINDS = (MAIN, MAIN_EXPLOITER, LEAGUE_EXPLOITER)
KINDS = (*LEARNING_KINDS, HISTORICAL, SCRIPTED)


@dataclasses.dataclass(frozen=True)
class Player:
  """One player of a league.

  Attributes:
    name: unique in its league.
    kind: one of KINDS.
    race: the race it plays.
    parent: of a historical player, the name of the learning player it is a copy of.
    parent_kind: of a historical player, the kind of its parent.
    steps: of a historical player, the agent steps its parent had learnt from.
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
  """When a learning player leaves a copy of itself, and whether it then starts anew.

  Attributes:
    minimum_steps: agent steps since the last copy before which there is none.
    win_rate: past them, a copy is left once every player of the reference set is beaten at a
      higher rate than this.
    timeout_steps: agent steps since the last copy after which there is one in any case.
    reset_probability: of starting anew from the supervised parameters after a copy.
  """

  minimum_steps: float
  win_rate: float
  timeout_steps: float
  reset_probability: float


class SnapshotRules(NamedTuple):
  """A rule for each kind of learning player."""

  main: SnapshotRule
  main_exploiter: SnapshotRule
  league_exploiter: SnapshotRule

  def of(self, player: Player) -> SnapshotRule:
    """The rule of a learning player; ValueError for others, which never change."""
    if not player.learns:
      raise ValueError(f"Player {player.name} is {player.kind}: it does not learn, so it leaves no "
                       f"snapshots. Expected one of {LEARNING_KINDS}.")
    return getattr(self, player.kind)


def pseudocode_rules(minimum_steps: float = 2e9, timeout_steps: float = 4e9,
                     win_rate: float = 0.7) -> SnapshotRules:
  """The rules of the published pseudocode, which are the default."""
  def rule(reset_probability):
    return SnapshotRule(minimum_steps, win_rate, timeout_steps, reset_probability)
  return SnapshotRules(main=rule(0.0), main_exploiter=rule(1.0), league_exploiter=rule(0.25))


def methods_rules(steps: float = 2e9, exploiter_timeout_steps: float = 4e9,
                  win_rate: float = 0.7) -> SnapshotRules:
  """The rules of the Methods text, where it differs from the pseudocode.

  Main agents leave a copy every `steps`; exploiters as soon as they win, or after `steps` (league
  exploiters) or `exploiter_timeout_steps` (main exploiters).
  """
  return SnapshotRules(
    main=SnapshotRule(steps, win_rate, steps, 0.0),
    main_exploiter=SnapshotRule(0, win_rate, exploiter_timeout_steps, 1.0),
    league_exploiter=SnapshotRule(0, win_rate, steps, 0.25))


def snapshot_due(rule: SnapshotRule, steps_since_snapshot: float,
                 reference_win_rates: Sequence[float] | np.ndarray) -> bool:
  """Whether a player leaves a copy of itself now (Vinyals et al. 2019, pseudocode).

  Args:
    rule: the player's.
    steps_since_snapshot: agent steps learnt from since its last copy.
    reference_win_rates: [N] against its reference set; see `reference_set`. Against nobody, only
      the timeout holds.
  """
  if steps_since_snapshot < rule.minimum_steps:
    return False
  rates = np.asarray(reference_win_rates, np.float64)
  return bool((rates.size > 0 and rates.min(initial=1.0) > rule.win_rate)
              or steps_since_snapshot > rule.timeout_steps)


def resets(rule: SnapshotRule, uniform: float) -> bool:
  """Whether a player starts anew after its copy; `uniform` is a draw from [0, 1)."""
  return uniform < rule.reset_probability


def reference_set(player: Player, players: Iterable[Player]) -> list[Player]:
  """Whom a player must beat to leave a copy early: main exploiters the live main agents, the others
  every historical player."""
  kind = MAIN if player.kind == MAIN_EXPLOITER else HISTORICAL
  return [other for other in players if other.kind == kind]


def snapshot(player: Player, number: int, steps: int) -> Player:
  """The frozen copy of a learning player, its `number`-th, at `steps` agent steps."""
  if not player.learns:
    raise ValueError(f"Player {player.name} is {player.kind}: only {LEARNING_KINDS} are copied.")
  return Player(name=f"{player.name}-{number:04d}", kind=HISTORICAL, race=player.race,
                parent=player.name, parent_kind=player.kind, steps=steps)


def initial_players(races: Sequence[str] = ("protoss", "zerg", "terran"), main_agents: int = 1,
                    main_exploiters: int = 1, league_exploiters: int = 2) -> list[Player]:
  """The league at its start: for each race its learning players, and the supervised agent's copy.

  The defaults are the published league: twelve learners and three frozen copies.
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
  return players
