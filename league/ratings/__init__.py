"""Ratings of players and populations, each with an interval.

SciPy is imported by the functions that use it: 0.34 CPU-seconds that most processes do not need.
"""

from starleague.league.ratings.elo import (
  elo_estimate,
  elo_expected_score,
  elo_ratings,
  elo_update,
)
from starleague.league.ratings.equilibria import (
  NashAverage,
  nash,
  nash_averaging,
  relative_population_performance,
)
from starleague.league.ratings.estimates import Estimate, posterior_estimate
from starleague.league.ratings.ladder import ladder_estimate, ladder_expected_score, ladder_rating
from starleague.league.ratings.robustness import exploitability, minimum_score, validation_score

__all__ = [
  "Estimate", "NashAverage", "elo_estimate", "elo_expected_score", "elo_ratings", "elo_update",
  "exploitability", "ladder_estimate", "ladder_expected_score", "ladder_rating", "minimum_score",
  "nash", "nash_averaging", "posterior_estimate", "relative_population_performance",
  "validation_score",
]
