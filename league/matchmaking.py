"""Matchmaking: prioritised fictitious self-play (PFSP) and the rules of each kind of player.

Pure functions of the players, their scores and a numpy Generator. Source: Vinyals et al. 2019,
Methods and pseudocode. Where the two differ, the pseudocode is the default and the text an option.
The source's win rates count draws half: they are scores here.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from starleague.league import players as p
from starleague.league.players import Player

_WEIGHTINGS = {
  "squared": lambda x: (1 - x) ** 2,  # prefers the hardest opponents
  "variance": lambda x: x * (1 - x),  # prefers opponents of equal strength
  "linear": lambda x: 1 - x,
  "linear_capped": lambda x: np.minimum(0.5, 1 - x),  # uniform up to a score of 0.5
}
WEIGHTINGS = tuple(_WEIGHTINGS)
_NEGLIGIBLE = 1e-10


class Scores(Protocol):
  """The part of a payoff that matchmaking needs."""

  def scores(self, home: str, away: Sequence[str]) -> np.ndarray:
    """Returns [N]: the score of `home` against each of `away`, 0.5 without games."""


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
  """

  pfsp_share: float = 0.5
  verification_share: float = 0.15
  exploited_score: float = 0.3
  forgotten_score: float = 0.7
  self_play_score: float = 0.3
  exploiter_score: float = 0.1
  exploiter_past_share: float = 1.0
  scripted_are_past: bool = False


DEFAULT_RULES = MatchRules()


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
    weighting: "squared" (1-x)^2, "variance" x(1-x), "linear" 1-x, "linear_capped" min(0.5, 1-x).

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
  weights = _WEIGHTINGS[weighting](rates)
  total = weights.sum()
  if total < _NEGLIGIBLE:
    return np.full(rates.size, 1 / rates.size)
  return weights / total


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
  rises = np.flatnonzero(rates[:-1] < rates[1:])
  return rates[:rises[-1] + 2] if rises.size else rates[:0]


def past_players(players: Sequence[Player], rules: MatchRules) -> list[Player]:
  """Returns the frozen players that PFSP draws from."""
  kinds = (p.HISTORICAL, p.SCRIPTED) if rules.scripted_are_past else (p.HISTORICAL,)
  return [player for player in players if player.kind in kinds]


def snapshots_of(player: Player, players: Sequence[Player]) -> list[Player]:
  """Returns a player's snapshots, in the order of `players` (that of creation)."""
  return [other for other in players if other.parent == player.name]


def _names(players: Sequence[Player]) -> list[str]:
  return [player.name for player in players]


def _draw(home: Player, opponents: Sequence[Player], payoff: Scores, weighting: str, branch: str,
          rng: np.random.Generator) -> Match:
  rates = payoff.scores(home.name, _names(opponents))
  chosen = opponents[rng.choice(len(opponents), p=pfsp(rates, weighting))]
  return Match(home.name, chosen.name, False, branch)


def _live_main(home: Player, players: Sequence[Player], rng: np.random.Generator) -> Player:
  mains = [player for player in players if player.kind == p.MAIN]
  if not mains:
    raise ValueError(f"{home.name} has no opponent: the league has no main agent. Add one.")
  return mains[rng.integers(len(mains))]


def _verification(home: Player, opponent: Player, players: Sequence[Player], payoff: Scores,
                  rng: np.random.Generator, rules: MatchRules) -> Match | None:
  """Returns a verification match, or None: against main exploiters or forgotten opponents."""
  exploiters = [player for player in players if player.parent_kind == p.MAIN_EXPLOITER]
  if exploiters:
    rates = payoff.scores(home.name, _names(exploiters))
    if rates.min() < rules.exploited_score:
      return _draw(home, exploiters, payoff, "squared", "verification_exploiters", rng)
  past = snapshots_of(opponent, players)
  kept = remove_monotonic_suffix(payoff.scores(home.name, _names(past)))
  if kept.size and kept.min() < rules.forgotten_score:
    return _draw(home, past[:kept.size], payoff, "squared", "verification_forgotten", rng)
  return None


def _live_or_past(home: Player, opponent: Player, players: Sequence[Player], payoff: Scores,
                  rng: np.random.Generator, threshold: float, both_learn: bool,
                  branch: str) -> Match:
  """Returns a match with the live opponent or, at a low score, with one of its snapshots."""
  past = snapshots_of(opponent, players)
  if past and payoff.scores(home.name, [opponent.name])[0] <= threshold:
    return _draw(home, past, payoff, "variance", f"{branch}_past", rng)
  return Match(home.name, opponent.name, both_learn, branch)


def main_agent_match(home: Player, players: Sequence[Player], payoff: Scores,
                     rng: np.random.Generator, rules: MatchRules = DEFAULT_RULES) -> Match:
  """Returns a main agent's match: PFSP over the past (50%), verification (15%) or self-play (35%).

  In a league without a past, PFSP matches are self-play too.

  Args:
    home: the main agent.
    players: the whole league, in order of creation.
    payoff: scores.
    rng: source of randomness.
    rules: shares and thresholds.
  """
  draw = rng.random()
  past = past_players(players, rules)
  if past and draw < rules.pfsp_share:
    return _draw(home, past, payoff, "squared", "pfsp", rng)
  opponent = _live_main(home, players, rng)
  if rules.pfsp_share <= draw < rules.pfsp_share + rules.verification_share:
    match = _verification(home, opponent, players, payoff, rng, rules)
    if match:
      return match
  return _live_or_past(home, opponent, players, payoff, rng, rules.self_play_score, True,
                       "self_play")


def main_exploiter_match(home: Player, players: Sequence[Player], payoff: Scores,
                         rng: np.random.Generator, rules: MatchRules = DEFAULT_RULES) -> Match:
  """Returns a main exploiter's match: a live main agent, or its snapshots if it is too strong.

  Arguments are those of `main_agent_match`.
  """
  asked = rng.random() < rules.exploiter_past_share
  opponent = _live_main(home, players, rng)
  threshold = rules.exploiter_score if asked else -1.0
  return _live_or_past(home, opponent, players, payoff, rng, threshold, False, "exploit")


def league_exploiter_match(home: Player, players: Sequence[Player], payoff: Scores,
                           rng: np.random.Generator, rules: MatchRules = DEFAULT_RULES) -> Match:
  """Returns a league exploiter's match: PFSP over the past, or a live main agent without a past.

  Arguments are those of `main_agent_match`.
  """
  past = past_players(players, rules)
  if not past:
    return Match(home.name, _live_main(home, players, rng).name, False, "exploit")
  return _draw(home, past, payoff, "linear_capped", "pfsp", rng)


_MATCHES = {p.MAIN: main_agent_match, p.MAIN_EXPLOITER: main_exploiter_match,
            p.LEAGUE_EXPLOITER: league_exploiter_match}


def match(home: Player, players: Sequence[Player], payoff: Scores, rng: np.random.Generator,
          rules: MatchRules = DEFAULT_RULES) -> Match:
  """Returns the next match of a learning player, by its kind.

  Arguments are those of `main_agent_match`.

  Raises:
    ValueError: the player does not learn, or the league has no main agent.
  """
  if home.kind not in _MATCHES:
    raise ValueError(f"Player {home.name} is {home.kind}: it requests no matches and is only an "
                     f"opponent. Expected one of {tuple(_MATCHES)}.")
  return _MATCHES[home.kind](home, players, payoff, rng, rules)
