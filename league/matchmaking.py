"""Who plays whom: prioritised fictitious self-play and the branch rules of each kind of player.

Pure functions of the players, their win rates and a numpy Generator (Vinyals et al. 2019, Methods
and pseudocode; where the two differ, the pseudocode is the default and the text an option).
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from starleague.league import players as p
from starleague.league.players import Player

_WEIGHTINGS = {
  "squared": lambda x: (1 - x) ** 2,  # the hardest opponents
  "variance": lambda x: x * (1 - x),  # those of about one's own strength
  "linear": lambda x: 1 - x,
  "linear_capped": lambda x: np.minimum(0.5, 1 - x),  # all who are not yet beaten, alike
}
WEIGHTINGS = tuple(_WEIGHTINGS)
_NEGLIGIBLE = 1e-10


class WinRates(Protocol):
  """What matchmaking needs of a payoff."""

  def win_rates(self, home: str, away: Sequence[str]) -> np.ndarray:
    """[N]: how often `home` beats each of `away`, 0.5 where nothing is known."""


class MatchRules(NamedTuple):
  """Shares and thresholds of the branch rules; defaults are the pseudocode's.

  Attributes:
    pfsp_share: of a main agent's matches against the league's past.
    verification_share: of a main agent's matches against those who once beat it.
    exploited_win_rate: verification plays main exploiters' copies while one wins more than this
      leaves the main agent.
    forgotten_win_rate: verification plays past opponents that are beaten less than this.
    self_play_win_rate: live main agents are played only while beaten more than this.
    exploiter_win_rate: a main exploiter plays live main agents only while it beats them more than
      this. 0.1; the text has 0.2.
    exploiter_past_share: of a main exploiter's matches in which the rule above is asked. 1; the text
      may be read as one half, the other half being played live.
    scripted_are_past: whether scripted players count among the league's past.
  """

  pfsp_share: float = 0.5
  verification_share: float = 0.15
  exploited_win_rate: float = 0.3
  forgotten_win_rate: float = 0.7
  self_play_win_rate: float = 0.3
  exploiter_win_rate: float = 0.1
  exploiter_past_share: float = 1.0
  scripted_are_past: bool = False


DEFAULT_RULES = MatchRules()


class Match(NamedTuple):
  """A pairing.

  Attributes:
    home: the name of the player that asked for it.
    away: its opponent's name.
    both_learn: whether the opponent's games are learnt from too: it is live, and this is self-play.
    branch: the rule that made it, for counting.
  """

  home: str
  away: str
  both_learn: bool
  branch: str


def pfsp(win_rates: Sequence[float] | np.ndarray, weighting: str = "linear") -> np.ndarray:
  """Probabilities of opponents under prioritised fictitious self-play.

  Args:
    win_rates: [N] against each opponent, in [0, 1].
    weighting: "squared" (1-x)^2, "variance" x(1-x), "linear" 1-x, "linear_capped" min(0.5, 1-x).

  Returns:
    [N] float64, adding up to 1; uniform where every weight is about 0.

  Raises:
    ValueError: for an unknown weighting, no opponents, or win rates out of [0, 1].
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
  """Leaves out the latest opponents in creation order over which the win rate only falls.

  That recent copies are harder than older ones is progress and no sign of forgetting.

  Args:
    win_rates: [N] against the copies of one player, oldest first.

  Returns:
    [N'] the leading ones that are kept: up to the last that is beaten more often than the one
    before it, none where there is no such.
  """
  rates = np.asarray(win_rates, np.float64)
  rises = np.flatnonzero(rates[:-1] < rates[1:])
  return rates[:rises[-1] + 2] if rises.size else rates[:0]


def past_players(players: Sequence[Player], rules: MatchRules) -> list[Player]:
  """The frozen players that PFSP draws from."""
  kinds = (p.HISTORICAL, p.SCRIPTED) if rules.scripted_are_past else (p.HISTORICAL,)
  return [player for player in players if player.kind in kinds]


def snapshots_of(player: Player, players: Sequence[Player]) -> list[Player]:
  """A player's copies, in the order of `players`, which is that of creation."""
  return [other for other in players if other.parent == player.name]


def _names(players: Sequence[Player]) -> list[str]:
  return [player.name for player in players]


def _draw(home: Player, opponents: Sequence[Player], payoff: WinRates, weighting: str, branch: str,
          rng: np.random.Generator) -> Match:
  rates = payoff.win_rates(home.name, _names(opponents))
  chosen = opponents[rng.choice(len(opponents), p=pfsp(rates, weighting))]
  return Match(home.name, chosen.name, False, branch)


def _live_main(home: Player, players: Sequence[Player], rng: np.random.Generator) -> Player:
  mains = [player for player in players if player.kind == p.MAIN]
  if not mains:
    raise ValueError(f"{home.name} has no opponent: the league has no main agent. Add one.")
  return mains[rng.integers(len(mains))]


def _verification(home: Player, opponent: Player, players: Sequence[Player], payoff: WinRates,
                  rng: np.random.Generator, rules: MatchRules) -> Match | None:
  """A match against somebody who beats a main agent though it should know better, if there is."""
  exploiters = [player for player in players if player.parent_kind == p.MAIN_EXPLOITER]
  if exploiters:
    rates = payoff.win_rates(home.name, _names(exploiters))
    if rates.min() < rules.exploited_win_rate:
      return _draw(home, exploiters, payoff, "squared", "verification_exploiters", rng)
  past = snapshots_of(opponent, players)
  kept = remove_monotonic_suffix(payoff.win_rates(home.name, _names(past)))
  if kept.size and kept.min() < rules.forgotten_win_rate:
    return _draw(home, past[:kept.size], payoff, "squared", "verification_forgotten", rng)
  return None


def _live_or_past(home: Player, opponent: Player, players: Sequence[Player], payoff: WinRates,
                  rng: np.random.Generator, threshold: float, both_learn: bool,
                  branch: str) -> Match:
  """The live opponent where it can be beaten, else its copies that are of one's own strength."""
  past = snapshots_of(opponent, players)
  if past and payoff.win_rates(home.name, [opponent.name])[0] <= threshold:
    return _draw(home, past, payoff, "variance", f"{branch}_past", rng)
  return Match(home.name, opponent.name, both_learn, branch)


def main_agent_match(home: Player, players: Sequence[Player], payoff: WinRates,
                     rng: np.random.Generator, rules: MatchRules = DEFAULT_RULES) -> Match:
  """A main agent's match: half PFSP over the past, the rest verification and self-play.

  A league without a past plays itself.

  Args:
    home: the main agent.
    players: the whole league, in order of creation.
    payoff: win rates.
    rng: drawn from.
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
  return _live_or_past(home, opponent, players, payoff, rng, rules.self_play_win_rate, True,
                       "self_play")


def main_exploiter_match(home: Player, players: Sequence[Player], payoff: WinRates,
                         rng: np.random.Generator, rules: MatchRules = DEFAULT_RULES) -> Match:
  """A main exploiter's match: a live main agent, or its copies while it is too strong.

  Arguments are those of main_agent_match.
  """
  asked = rng.random() < rules.exploiter_past_share
  opponent = _live_main(home, players, rng)
  threshold = rules.exploiter_win_rate if asked else -1.0
  return _live_or_past(home, opponent, players, payoff, rng, threshold, False, "exploit")


def league_exploiter_match(home: Player, players: Sequence[Player], payoff: WinRates,
                           rng: np.random.Generator, rules: MatchRules = DEFAULT_RULES) -> Match:
  """A league exploiter's match: PFSP over the past; a live main agent where there is none.

  Arguments are those of main_agent_match.
  """
  past = past_players(players, rules)
  if not past:
    return Match(home.name, _live_main(home, players, rng).name, False, "exploit")
  return _draw(home, past, payoff, "linear_capped", "pfsp", rng)


_MATCHES = {p.MAIN: main_agent_match, p.MAIN_EXPLOITER: main_exploiter_match,
            p.LEAGUE_EXPLOITER: league_exploiter_match}


def match(home: Player, players: Sequence[Player], payoff: WinRates, rng: np.random.Generator,
          rules: MatchRules = DEFAULT_RULES) -> Match:
  """The next match of a learning player, by its kind; arguments are those of main_agent_match.

  Raises:
    ValueError: for a player that does not learn, or a league without a main agent.
  """
  if home.kind not in _MATCHES:
    raise ValueError(f"Player {home.name} is {home.kind}: it asks for no matches, it only is an "
                     f"opponent. Expected one of {tuple(_MATCHES)}.")
  return _MATCHES[home.kind](home, players, payoff, rng, rules)
