"""Matchmaking: prioritised fictitious self-play (PFSP) and the rules of each kind of player.

Functions of the players, their scores and a source of randomness. Source: Vinyals et al. 2019,
Methods and pseudocode. Where the two differ, the pseudocode is the default and the text an option.
The source's win rates count draws half: they are scores here.
"""

import array
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from starleague.league import players as p
from starleague.league.counts import ScoreRow, Weight
from starleague.league.players import Player


class _Weighting(NamedTuple):
  """A weight of opponents as a function of the score: of an array, of one score; its maximum."""

  of_array: Callable[[np.ndarray], np.ndarray]
  of_score: Weight
  maximum: float


_WEIGHTINGS = {
  # Prefers the hardest opponents.
  "squared": _Weighting(lambda x: (1 - x) ** 2, lambda x: (1 - x) ** 2, 1.0),
  # Prefers opponents of equal strength.
  "variance": _Weighting(lambda x: x * (1 - x), lambda x: x * (1 - x), 0.25),
  "linear": _Weighting(lambda x: 1 - x, lambda x: 1 - x, 1.0),
  # Uniform up to a score of 0.5.
  "linear_capped": _Weighting(
    lambda x: np.minimum(0.5, 1 - x), lambda x: 0.5 if x < 0.5 else 1 - x, 0.5),
  # Fictitious self-play without priorities.
  "uniform": _Weighting(np.ones_like, lambda x: 1.0, 1.0),
}
WEIGHTINGS = tuple(_WEIGHTINGS)
_NEGLIGIBLE = 1e-10
ATTEMPTS = 16  # of a draw by rejection
MOST_DRAWS = ATTEMPTS + 3  # uniform draws that one match takes at most


Draws = Iterator[float]  # uniform, from [0, 1)


class Random(Protocol):
  """The part of a numpy Generator that matchmaking needs."""

  def random(self) -> float:
    """Returns a uniform draw from [0, 1)."""


class Scores(Protocol):
  """The part of a payoff that a match needs."""

  def scores(self, home: str, away: Sequence[str]) -> np.ndarray:
    """Returns [N]: the score of `home` against each of `away`, 0.5 without games."""


class LiveScores(Protocol):
  """The part of a table of counts that all matches of a player need."""

  def numbers(self, names: Sequence[str]) -> list[int]:
    """Returns the numbers of players; they never change."""

  def row(self, name: str) -> ScoreRow:
    """Returns the scores of a player, which later changes reach too."""


class _FixedScores:
  """The scores of one player as they are now."""

  def __init__(self, home: Player, roster: "Roster", payoff: Scores):
    names = [player.name for player in roster.players]
    self._numbers = {name: number for number, name in enumerate(names)}
    self._row = ScoreRow(np.asarray(payoff.scores(home.name, names)).tolist())

  def numbers(self, names: Sequence[str]) -> list[int]:
    return [self._numbers[name] for name in names]

  def row(self, name: str) -> ScoreRow:
    del name
    return self._row


class MatchRules(NamedTuple):
  """Shares and thresholds of the matchmaking rules; the defaults are the pseudocode's.

  Attributes:
    pfsp_share: share of a main agent's matches that PFSP draws from the league's past.
    verification_share: share of a main agent's matches against players that once beat it.
    exploited_score: verification plays snapshots of main exploiters if the main agent's score
      against one of them is below this.
    forgotten_score: verification plays past opponents if the score against one is below this.
    self_play_score: live main agents are played only if the score against them is above this.
    exploiter_score: a main exploiter plays live main agents only if its score against them is
      above this. 0.1; the text has 0.2.
    exploiter_past_share: share of a main exploiter's matches to which the rule above applies. 1;
      the text can be read as one half, with the other half played live.
    scripted_are_past: whether scripted players belong to the league's past.
    past_weighting: of main agents' PFSP over the league's past.
  """

  pfsp_share: float = 0.5
  verification_share: float = 0.15
  exploited_score: float = 0.3
  forgotten_score: float = 0.7
  self_play_score: float = 0.3
  exploiter_score: float = 0.1
  exploiter_past_share: float = 1.0
  scripted_are_past: bool = False
  past_weighting: str = "squared"


DEFAULT_RULES = MatchRules()
# Algorithms of main agents that the paper compares (Vinyals et al. 2019, Figure 3).
SCHEMES = {
  "pfsp": DEFAULT_RULES,
  "pfsp_alone": MatchRules(pfsp_share=1.0, verification_share=0.0),
  "fsp": MatchRules(pfsp_share=1.0, verification_share=0.0, past_weighting="uniform"),
  "self_play": MatchRules(pfsp_share=0.0, verification_share=0.0, self_play_score=-1.0),
  "pfsp_self_play": MatchRules(verification_share=0.0, self_play_score=-1.0),  # half each
}


class Match(NamedTuple):
  """A match.

  Attributes:
    home: name of the player that requested it.
    away: name of its opponent.
    both_learn: whether the opponent learns from the game too: it is live, and this is self-play.
    branch: the rule that made the match, for statistics.
  """

  home: str
  away: str
  both_learn: bool
  branch: str


def pfsp(win_rates: Sequence[float] | np.ndarray, weighting: str = "linear") -> np.ndarray:
  """Computes the probabilities of opponents under prioritised fictitious self-play.

  Source: Vinyals et al. 2019, Methods.

  Args:
    win_rates: [N] score against each opponent, in [0, 1].
    weighting: "squared" (1-x)^2, "variance" x(1-x), "linear" 1-x, "linear_capped" min(0.5, 1-x),
      "uniform" 1.

  Returns:
    [N] float64 with sum 1; uniform if every weight is about 0.

  Raises:
    ValueError: the weighting is unknown, there are no opponents, or a win rate is outside [0, 1].
  """
  if weighting not in _WEIGHTINGS:
    raise ValueError(f"Unknown weighting {weighting!r}, expected one of {WEIGHTINGS}.")
  rates = np.asarray(win_rates, np.float64)
  if rates.ndim != 1 or not rates.size:
    raise ValueError(f"win_rates has shape {rates.shape}, expected [N] with N > 0: there must be "
                     "an opponent to choose.")
  if not ((rates >= 0) & (rates <= 1)).all():  # NaN compares false
    raise ValueError(f"win_rates must be in [0, 1], found {rates[~((rates >= 0) & (rates <= 1))]}.")
  weights = _or_equal(_WEIGHTINGS[weighting].of_array(rates))
  return weights / weights.sum()


def _or_equal(weights: np.ndarray) -> np.ndarray:
  """Returns [N] weights of opponents; equal ones if every weight is about 0."""
  return weights if weights.sum() >= _NEGLIGIBLE else np.ones_like(weights)


def remove_monotonic_suffix(win_rates: Sequence[float] | np.ndarray) -> np.ndarray:
  """Removes the newest opponents over which the win rate only falls.

  Newer snapshots are harder than older ones because of progress: that is no sign of forgetting.

  Args:
    win_rates: [N] score against the snapshots of one player, oldest first.

  Returns:
    [N'] the leading entries, up to the last one that exceeds its predecessor; empty if there is
    none.
  """
  rates = np.asarray(win_rates, np.float64)
  return rates[:_without_monotonic_suffix(rates.tolist())]


def _without_monotonic_suffix(rates: list[float]) -> int:
  """Returns the number of rates that `remove_monotonic_suffix` keeps."""
  for i in range(len(rates) - 1, 0, -1):  # from the newest: the last rise is rarely far
    if rates[i - 1] < rates[i]:
      return i + 1
  return 0


class Roster:
  """The players of a league by the groups that matchmaking draws from. Never changes.

  Attributes:
    players: all players, in order of creation.
    mains: names of the live main agents.
    exploiter_snapshots: names of the snapshots of main exploiters.
  """

  def __init__(self, players: Iterable[Player]):
    self.players = tuple(players)
    self.mains = self._names(lambda player: player.kind == p.MAIN)
    self.exploiter_snapshots = self._names(lambda player: player.parent_kind == p.MAIN_EXPLOITER)
    self._past = (self._names(lambda player: player.kind == p.HISTORICAL),
                  self._names(lambda player: player.kind in (p.HISTORICAL, p.SCRIPTED)))
    snapshots: dict[str, list[str]] = {}
    for player in self.players:
      if player.parent is not None:
        snapshots.setdefault(player.parent, []).append(player.name)
    self._snapshots = {parent: tuple(names) for parent, names in snapshots.items()}

  def _names(self, belongs: Callable[[Player], bool]) -> tuple[str, ...]:
    return tuple(player.name for player in self.players if belongs(player))

  def past(self, rules: MatchRules) -> tuple[str, ...]:
    """Returns the names of the frozen players that PFSP draws from."""
    return self._past[rules.scripted_are_past]

  def snapshots_of(self, name: str) -> tuple[str, ...]:
    """Returns the names of a player's snapshots, oldest first."""
    return self._snapshots.get(name, ())


class _Group(NamedTuple):
  """Opponents that PFSP draws from."""

  matches: list[Match]  # [N] with each of them
  numbers: Sequence[int]  # [N] of their scores and weights
  weights: Sequence[float]  # of all players, by number
  maximum: float  # of the weights
  size: int  # N


class _Live(NamedTuple):
  """A live main agent as an opponent."""

  match: Match
  number: int  # of its score
  past: _Group  # its snapshots, for a home player with a low score
  forgotten: _Group  # the same, for verification


class Opponents:
  """The opponents that a learning player may meet; valid until a player joins or leaves the league.

  Attributes:
    match: returns the next match, of at most MOST_DRAWS draws; raises LeagueError if it needs a
      main agent and there is none.
  """

  def __init__(self, home: Player, roster: Roster, scores: LiveScores,
               rules: MatchRules = DEFAULT_RULES):
    """Takes the player, its league, the scores, and the shares and thresholds.

    Raises:
      LeagueError: the player does not learn.
    """
    if not home.learns:
      raise p.LeagueError(f"Player {home.name} is {home.kind}: it requests no matches and is only "
                          f"an opponent. Expected one of {p.LEARNING_KINDS}.")
    self._home, self._rules, self._table = home.name, rules, scores
    self._pfsp_share = rules.pfsp_share
    self._verified_share = rules.pfsp_share + rules.verification_share
    self._row = scores.row(home.name)
    self._scores = self._row.scores
    is_main = home.kind == p.MAIN
    self._past = self._group(
      roster.past(rules), rules.past_weighting if is_main else "linear_capped", "pfsp")
    self._exploiters = self._group(roster.exploiter_snapshots, "squared", "verification_exploiters")
    self._lives = [self._live(name, roster, is_main) for name in roster.mains]
    self._verified: dict[int, tuple[int, _Group | None, int]] = {}
    self.match: Callable[[Draws], Match] = {
      p.MAIN: self._main_agent_match, p.MAIN_EXPLOITER: self._main_exploiter_match,
      p.LEAGUE_EXPLOITER: self._league_exploiter_match}[home.kind]

  def _group(self, names: tuple[str, ...], weighting: str, branch: str) -> _Group:
    _, weight, maximum = _WEIGHTINGS[weighting]
    return _Group([Match(self._home, name, False, branch) for name in names],
                  array.array("i", self._table.numbers(names)),
                  self._row.weights(weight), maximum, len(names))

  def _live(self, name: str, roster: Roster, is_main: bool) -> _Live:
    branch, past = "self_play" if is_main else "exploit", roster.snapshots_of(name)
    number, = self._table.numbers([name])
    return _Live(Match(self._home, name, is_main, branch), number,
                 self._group(past, "variance", f"{branch}_past"),
                 self._group(past, "squared", "verification_forgotten"))

  def _main_agent_match(self, draws: Draws) -> Match:
    """PFSP over the past (50%), verification (15%) or self-play (35%).

    In a league without a past, PFSP matches are self-play too.
    """
    draw = next(draws)
    if draw < self._pfsp_share and self._past.size:
      return self._drawn(self._past, self._past.size, draws)
    opponent = self._live_main(draws)
    if self._pfsp_share <= draw < self._verified_share:
      group, size = self._verification(opponent)
      if group:
        return self._drawn(group, size, draws)
    if self._scores[opponent.number] > self._rules.self_play_score or not opponent.past.size:
      return opponent.match
    return self._drawn(opponent.past, opponent.past.size, draws)

  def _main_exploiter_match(self, draws: Draws) -> Match:
    """A live main agent, or its snapshots if it is too strong."""
    asked = next(draws) < self._rules.exploiter_past_share
    opponent = self._live_main(draws)
    if (not asked or self._scores[opponent.number] > self._rules.exploiter_score
        or not opponent.past.size):
      return opponent.match
    return self._drawn(opponent.past, opponent.past.size, draws)

  def _league_exploiter_match(self, draws: Draws) -> Match:
    """PFSP over the past, or a live main agent without a past."""
    if not self._past.size:
      return self._live_main(draws).match
    return self._drawn(self._past, self._past.size, draws)

  def _drawn(self, group: _Group, size: int, draws: Draws) -> Match:
    """Returns a match with one of the first `size` opponents of a group, drawn by PFSP.

    By rejection: an opponent drawn uniformly is accepted with its weight over the largest possible
    weight. That takes a few weights where the distribution needs all, and is as exact. If no
    opponent is accepted, most weights are small, and the distribution is computed.
    """
    matches, numbers, weights, maximum, _ = group
    for draw in itertools.islice(draws, ATTEMPTS):
      position = draw * size
      index = int(position)
      # The fraction is uniform too, and independent of the index.
      if (position - index) * maximum < weights[numbers[index]]:
        return matches[index]
    draw = next(draws)
    cumulative = _or_equal(np.array(weights)[numbers[:size]]).cumsum()
    # Rounding may lead to the total itself, which is past the last opponent.
    return matches[min(int(cumulative.searchsorted(draw * cumulative[-1], "right")), size - 1)]

  def _live_main(self, draws: Draws) -> _Live:
    """Returns a live main agent, drawn uniformly."""
    lives = self._lives
    if not lives:
      raise p.LeagueError(f"{self._home} has no opponent: the league has no main agent. Add one.")
    return lives[int(next(draws) * len(lives))]

  def _verification(self, opponent: _Live) -> tuple[_Group | None, int]:
    """Returns the group of a verification match and the number of its opponents.

    They are main exploiters or forgotten opponents; None stands for neither. The answer holds until
    a score changes.
    """
    changes, number = self._row.changes, opponent.number
    checked, group, size = self._verified.get(number, (-1, None, 0))
    if checked != changes:
      group, size = self._find_verification(opponent)
      self._verified[number] = changes, group, size
    return group, size

  def _find_verification(self, opponent: _Live) -> tuple[_Group | None, int]:
    exploiters, past, scores = self._exploiters, opponent.forgotten, self._scores
    if any(scores[number] < self._rules.exploited_score for number in exploiters.numbers):
      return exploiters, exploiters.size
    kept = _without_monotonic_suffix([scores[number] for number in past.numbers])
    if any(scores[number] < self._rules.forgotten_score for number in past.numbers[:kept]):
      return past, kept
    return None, 0


def match(home: Player, players: Sequence[Player], payoff: Scores, rng: Random,
          rules: MatchRules = DEFAULT_RULES) -> Match:
  """Returns the next match of a learning player, by its kind.

  Args:
    home: the player.
    players: the whole league, in order of creation.
    payoff: scores.
    rng: source of randomness; at most MOST_DRAWS draws.
    rules: shares and thresholds.

  Raises:
    LeagueError: the player does not learn, or the league has no main agent.
  """
  roster = Roster(players)
  opponents = Opponents(home, roster, _FixedScores(home, roster, payoff), rules)
  return opponents.match(iter(rng.random, None))
