"""The league: players, matchmaking, payoff, ratings, coordinator (Vinyals et al. 2019, Methods).

It handles names of players, step counts and results, and imports no room but `common`. The process
that serves a league imports `league.server`, which loads gRPC.
"""

from starleague.league.client import GrpcTransport, LeagueClient, LeagueUnavailableError
from starleague.league.coordinator import Coordinator, Options
from starleague.league.counts import Counts
from starleague.league.evaluation import NotableRules, notable
from starleague.league.league_file import (
  BranchCount,
  LeagueFile,
  Order,
  Progress,
  Replay,
  open_league_file,
)
from starleague.league.leases import Assignment
from starleague.league.matchmaking import Match, MatchRules, match, pfsp, remove_monotonic_suffix
from starleague.league.payoff import (
  DRAW,
  LOSS,
  WIN,
  GameResult,
  Interval,
  Payoff,
  wilson_interval,
)
from starleague.league.players import (
  HISTORICAL,
  LEAGUE_EXPLOITER,
  MAIN,
  MAIN_EXPLOITER,
  SCRIPTED,
  LeagueError,
  Player,
  SnapshotRule,
  SnapshotRules,
  UnknownPlayerError,
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
from starleague.league.ratings.archive import Archive, Behaviour
from starleague.league.reporting import GamesReport, PlayedGame, Receipt
from starleague.league.service import Service

__all__ = [
  "Archive", "Assignment", "Behaviour", "BranchCount", "Coordinator", "Counts", "DRAW",
  "Estimate", "GameResult", "GamesReport", "GrpcTransport", "HISTORICAL", "Interval",
  "LEAGUE_EXPLOITER", "LOSS", "LeagueClient", "LeagueError", "LeagueFile",
  "LeagueUnavailableError", "MAIN", "MAIN_EXPLOITER", "Match", "MatchRules", "NashAverage",
  "NotableRules", "Options", "Order", "Payoff", "PlayedGame", "Player", "Progress", "Receipt",
  "Replay", "SCRIPTED", "Service", "SnapshotRule", "SnapshotRules", "UnknownPlayerError", "WIN",
  "elo_estimate", "elo_expected_score", "elo_ratings", "elo_update", "exploitability",
  "initial_players", "ladder_estimate", "ladder_expected_score", "ladder_rating", "match",
  "methods_rules", "minimum_score", "nash", "nash_averaging", "notable", "open_league_file",
  "pfsp", "posterior_estimate", "pseudocode_rules", "relative_population_performance",
  "remove_monotonic_suffix", "validation_score", "wilson_interval",
]
