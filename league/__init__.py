"""The league: players, matchmaking, payoff, ratings, coordinator (Vinyals et al. 2019, Methods).

It handles names of players, step counts and results, and imports no room but `common`.
"""

from starleague.league.coordinator import Coordinator, Order, Progress
from starleague.league.matchmaking import Match, MatchRules, match, pfsp, remove_monotonic_suffix
from starleague.league.payoff import (
  DRAW,
  LOSS,
  WIN,
  Counts,
  GameResult,
  Interval,
  Payoff,
  wilson_interval,
)
from starleague.league.players import (
  Player,
  SnapshotRule,
  SnapshotRules,
  initial_players,
  methods_rules,
  pseudocode_rules,
)
from starleague.league.ratings import (
  Estimate,
  NashAverage,
  elo_estimate,
  elo_expected_score,
  elo_ratings,
  elo_update,
  exploitability,
  ladder_estimate,
  ladder_expected_score,
  ladder_rating,
  minimum_score,
  nash,
  nash_averaging,
  posterior_estimate,
  relative_population_performance,
  validation_score,
)

__all__ = [
  "Coordinator", "Counts", "DRAW", "Estimate", "GameResult", "Interval", "LOSS", "Match",
  "MatchRules", "NashAverage", "Order", "Payoff", "Player", "Progress", "SnapshotRule",
  "SnapshotRules", "WIN", "elo_estimate", "elo_expected_score", "elo_ratings", "elo_update",
  "exploitability", "initial_players", "ladder_estimate", "ladder_expected_score",
  "ladder_rating", "match", "methods_rules", "minimum_score", "nash", "nash_averaging", "pfsp",
  "posterior_estimate", "pseudocode_rules", "relative_population_performance",
  "remove_monotonic_suffix", "validation_score", "wilson_interval",
]
