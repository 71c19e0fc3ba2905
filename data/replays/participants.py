"""The two players of a game: names, results and ratings, by the tracker's numbers."""

import html
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starleague.data.replays import tracker
from starleague.data.replays.protocol import Lobby, text
from starleague.data.replays.readers import Value
from starleague.data.replays.refusals import NO_TRACKER, NOT_MELEE, NOT_ONE_ON_ONE, Refusal

_COMPUTER = 3  # m_control
_RESULTS = {1: "win", 2: "loss", 3: "tie"}  # m_result
_OPPOSITE = {"win": "loss", "loss": "win", "tie": "tie"}
UNKNOWN = "unknown"


class Participant(NamedTuple):
  """A player of a game."""

  player: int  # the tracker's number
  user: int  # index in game events; -1 for the computer
  name: str
  race: str  # of types.RACES, that of the first town hall: names of races are localised
  computer: bool
  mmr: int | None  # None if the file has none, as before 3.14 and in tournaments
  result: str
  x: float  # game coordinates of the first town hall
  y: float


def read(details: dict[str, Value], lobby: Lobby, tracked: tracker.Tracked) -> list[Participant]:
  """Returns the two players in the tracker's order.

  Raises:
    Refusal: the game is not one of two players against each other, or is no melee game.
  """
  listed = _opponents(details)
  setups = sorted(tracked.setups)
  if not setups:  # files without the event number players as they are listed
    setups = [tracker.Setup(i + 1, i, player["m_control"] == _COMPUTER)
              for i, player in enumerate(listed)]
  if len(setups) > 2:  # some lobbies number observers too
    starting = {unit.player for unit in tracked.units if unit.kind == tracker.START}
    setups = [setup for setup in setups if setup.player in starting]
  if len(setups) != 2:
    raise Refusal(NOT_ONE_ON_ONE, f"expected 2 players in the tracker events, found {len(setups)}")
  if _matches(listed[::-1], setups, lobby) > _matches(listed, setups, lobby):
    listed = listed[::-1]
  found = [_participant(player, setup, lobby, tracked)
           for player, setup in zip(listed, setups, strict=True)]
  results = [player.result for player in found]
  return [player._replace(result=result if result != UNKNOWN else _OPPOSITE.get(other, UNKNOWN))
          for player, result, other in zip(found, results, results[::-1], strict=True)]


def clean_name(name: Value) -> str:
  """Returns a name without markup and clan: `&lt;Clan&gt;<sp/>Name` is `Name`."""
  return html.unescape(text(name).rpartition("<sp/>")[2])


def infer_results(players: Sequence[Participant],
                  left: Mapping[int, int | None]) -> list[Participant]:
  """Returns the players with results where the file has none: who leaves first has lost.

  Args:
    players: the two players.
    left: game loop at which each user left; None if it did not.
  """
  if any(player.result != UNKNOWN for player in players):
    return list(players)
  loops = [left.get(player.user) for player in players]
  first = [loop is not None and (other is None or loop < other)
           for loop, other in zip(loops, loops[::-1], strict=True)]
  if sum(first) != 1:
    return list(players)
  return [player._replace(result="loss" if lost else "win")
          for player, lost in zip(players, first, strict=True)]


def _opponents(details: dict[str, Value]) -> list[dict[str, Value]]:
  """Returns the two entries of the list of players that are no observers."""
  listed = [player for player in details["m_playerList"] or () if not player.get("m_observe")]
  if len(listed) != 2:
    raise Refusal(NOT_ONE_ON_ONE, f"expected 2 players, found {len(listed)}")
  if listed[0]["m_teamId"] == listed[1]["m_teamId"]:
    raise Refusal(NOT_ONE_ON_ONE, "expected 2 players of different teams, found one team")
  return listed


def _matches(listed: Sequence[dict[str, Value]], setups: Sequence[tracker.Setup],
             lobby: Lobby) -> int:
  """Returns how many players of the list agree with the tracker's players at their places."""
  found = 0
  for player, setup in zip(listed, setups, strict=True):
    computer = player["m_control"] == _COMPUTER
    named = (0 <= setup.user < len(lobby.users)
             and text(lobby.users[setup.user]["m_name"]) == clean_name(player["m_name"]))
    found += (computer == setup.computer) + named
  return found


def _participant(player: dict[str, Value], setup: tracker.Setup, lobby: Lobby,
                 tracked: tracker.Tracked) -> Participant:
  hall = next((unit for unit in tracked.units if unit.player == setup.player
               and unit.kind == tracker.START and unit.name in tracker.TOWN_HALLS), None)
  if hall is None:
    raise Refusal(NOT_MELEE, f"expected a town hall at the start, player {setup.player} has none")
  user = lobby.users[setup.user] if 0 <= setup.user < len(lobby.users) else {}
  rating = user.get("m_scaledRating") or 0
  return Participant(
    player=setup.player, user=setup.user, name=clean_name(player["m_name"]),
    race=tracker.TOWN_HALLS[hall.name], computer=setup.computer,
    mmr=rating if rating > 0 else None,  # unranked players have a large negative one
    result=_RESULTS.get(player["m_result"], UNKNOWN), x=hall.x, y=hall.y)


def require_tracker(data: bytes | None) -> bytes:
  """Returns the bytes of the tracker events. Raises Refusal if the file has none."""
  if not data:
    raise Refusal(NO_TRACKER, "the file has no replay.tracker.events: the game is older than "
                  "2.0.8, or they were removed")
  return data
