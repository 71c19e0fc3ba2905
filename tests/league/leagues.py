"""Leagues for tests: one race, with one league exploiter, and rules of a few steps."""

import socket

from starleague.league import players
from starleague.league.coordinator import Coordinator
from starleague.league.payoff import WIN, GameResult

RULES = players.pseudocode_rules(minimum_steps=100, timeout_steps=200)
MAIN, EXPLOITER, HUNTER = "zerg-main-0", "zerg-main_exploiter-0", "zerg-league_exploiter-0"
FIRST = "zerg-main-0-0000"


def start(path, **options):
  league = players.initial_players(["zerg"], league_exploiters=1)
  return Coordinator(path, league, **{"snapshot_rules": RULES, **options})


def result(identifier, home, away, outcome=WIN):
  return GameResult(str(identifier), home, away, outcome, 0.)


def free_port():
  """Returns a port of this machine that nobody listens on."""
  with socket.socket() as found:
    found.bind(("127.0.0.1", 0))
    return found.getsockname()[1]
