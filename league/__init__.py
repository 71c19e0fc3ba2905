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
  elo_expected_score,
  elo_ratings,
  elo_update,
  ladder_expected_score,
  ladder_rating,
  nash,
  relative_population_performance,
)

__all__ = [
  "Coordinator", "Counts", "DRAW", "Interval", "LOSS", "Match", "MatchRules", "Order", "Payoff",
  "Player", "Progress", "GameResult", "SnapshotRule", "SnapshotRules", "WIN", "elo_expected_score",
  "elo_ratings", "elo_update", "initial_players", "ladder_expected_score", "ladder_rating",
  "match", "methods_rules", "nash", "pfsp", "pseudocode_rules", "relative_population_performance",
  "remove_monotonic_suffix", "wilson_interval",
]
