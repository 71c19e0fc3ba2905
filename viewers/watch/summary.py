"""How a recorded game was set up and how it ended, in words."""

from starleague.environments.skirmish.games.replays import Replay
from starleague.environments.skirmish.rules.tables import maps
from starleague.viewers import catalog
from starleague.viewers.watch.frames import rules_of


def map_name(replay: Replay) -> str:
  """Returns the name of a game's map."""
  flat = rules_of(replay).terrain is None
  return maps.NAMES[0 if flat else int(replay.match_up.map_index) % len(maps.NAMES)]


def outcome(replay: Replay) -> str:
  """Returns how a game ended."""
  if replay.winner in (0, 1):
    return f"{replay.players[replay.winner]} (player {replay.winner + 1}) won"
  return "draw" if replay.winner == 2 else "unfinished"


def result(replay: Replay) -> str:
  """Returns how and when a game ended."""
  return f"{outcome(replay)} at {catalog.clock(replay.steps)}"
