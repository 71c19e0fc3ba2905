"""The action stream: commands, users of resumed games, the loops of actions, functions."""

import pytest

from starleague.agent import vocabulary as v
from starleague.data.replays import commands, decode, names, tracker
from starleague.data.replays.protocol import Event
from tests.data.replays import games
from tests.data.replays.games import REAL, Game, needs_real


def test_queued_commands_and_functions_by_target():
  events = [games.select(5, 0, 11), games.command(6, 0, ("attack", 0), (1, 1), flags=0x102),
            games.command(7, 0, ("attack", 0), 20), games.command(8, 0, ("stop", 0)),
            games.command(9, 0, ("attack", 5), (1, 1))]
  rows = games.decoded(Game(events=tuple(events))).commands
  assert [(row.function, row.queued) for row in rows] == [
    ("Attack_pt", True), ("Attack_unit", False), ("Stop_quick", False), (None, False)]
  assert games.decoded(Game(events=tuple(events))).game.resolved == 3


def test_users_of_a_resumed_game():
  """After a resume, users have the indices of the new lobby."""
  events = [games.select(5, 0, 11), games.command(6, 0, ("stop", 0)),
            (6, 0, "HijackReplayGame", {"m_userInfos": [
              {"m_gameUserId": 3, "m_observe": 0, "m_name": b"Ann"},
              {"m_gameUserId": 2, "m_observe": 1, "m_name": b"Caster"},
              {"m_gameUserId": 4, "m_observe": 0, "m_name": b"Bob"}], "m_method": 0}),
            games.command(20, 3, ("stop", 0)), games.command(21, 4, ("stop", 0))]
  rows = games.decoded(Game(events=tuple(events))).commands
  expected = [(1, 6, [games.tag(11)]), (1, 20, [games.tag(11)]), (2, 21, [])]
  assert [(row.player, row.loop, row.units) for row in rows] == expected
  infos = events[2][3]["m_userInfos"]
  events[2][3]["m_userInfos"] = infos[::-1]  # names count, not the order
  found = games.decoded(Game(events=tuple(events)))
  assert [(row.player, row.loop, row.units) for row in found.commands] == expected
  for info in infos:
    info["m_name"] = b"Renamed"
  events[2][3]["m_userInfos"] = infos
  found = games.decoded(Game(events=tuple(events)))
  assert [(row.player, row.loop, row.units) for row in found.commands] == expected


@needs_real
@pytest.mark.parametrize("name", ["02", "03", "04", "05", "06"])
def test_action_loops_are_those_of_deepmind(name):
  """DeepMind's list of the game loops at which player 1 of each replay acted."""
  path = REAL / "pysc2" / f"replay_{name}.SC2Replay"
  listed = path.with_suffix(".skips.txt").read_text().splitlines()[0]
  found = decode.decode(path.read_bytes(), path.name).players[0].action_loops
  assert found == [int(loop) for loop in listed.split(",")]


def again(loop):
  return loop, 0, "CommandManagerState", {"m_state": 1, "m_sequence": 1}


def test_equal_commands_of_a_game_loop_are_one_row_of_at_most_three():
  """Five clicks in loop 6 are three and two; one of loop 7, and those with a place, stay alone."""
  place = games.command(8, 0, ("attack", 0), (1, 1))
  events = [games.select(5, 0, 11), games.command(6, 0, ("stop", 0)), *[again(6)] * 4, again(7),
            place, again(8)]
  found = commands.read([Event(*event) for event in events], {0: "Ann"})[0]
  assert [(row.loop, row.kind, row.repeat) for row in found.commands] == [
    (6, names.QUICK, 2), (6, names.QUICK, 1), (7, names.QUICK, 0), (8, names.POINT, 0),
    (8, names.POINT, 0)]
  assert found.actions == [5, 6, 6, 6, 6, 6, 7, 8, 8] and found.left is None


@pytest.mark.parametrize("events, loops", [
  # Two camera moves before an action are one; the last one has no action behind it.
  ([("CameraUpdate", 1), ("CameraUpdate", 2), ("Cmd", 5), ("Cmd", 7), ("CameraUpdate", 9),
    ("GameUserLeave", 12)], [2, 5, 7, 12]),
  # A command takes the loop of a camera move; selections are no actions.
  ([("CameraUpdate", 3), ("Cmd", 3), ("SelectionDelta", 4), ("Cmd", 6)], [3, 6]),
  # Events after somebody has left do not count.
  ([("Cmd", 3), ("GameUserLeave", 4), ("Cmd", 8)], [3, 4]),
  ([], [0])])
def test_loops_of_actions(events, loops):
  stream = [Event(loop, 0, name, {}) for name, loop in events]
  other = [Event(loop, 7, "Cmd", {}) for _, loop in events]  # of an observer
  assert commands.action_loops([*stream, *other], [0]) == {0: loops}


def drones(build, count=3):
  """Returns commands to larvae to become drones, with the links of a table, and the larvae."""
  link = next(link for link, name in names.links_of(build).names.items() if name == "LarvaTrain")
  command = commands.Command(6, link, 0, names.QUICK, False, (games.tag(22),), 0, None, None, 0)
  types = tracker.Types()
  types.add(games.tag(22), 0, "Larva")
  return [command] * count, types


def test_the_table_of_links_agrees_with_the_selected_units():
  """Links have moved since build 70154: the table of another build explains the larvae."""
  function = v.FUNCTIONS.index("Train_Drone_quick")
  found, types = drones(80949)
  assert names.links_of(75689).build == 70154
  assert names.links_of(75689).names.get(found[0].link) != "LarvaTrain"
  assert commands.resolve(found, 75689, types) == commands.Resolution(80949, [function] * 3, 3, 3)
  found, types = drones(75689)
  assert commands.resolve(found, 75689, types) == commands.Resolution(70154, [function] * 3, 3, 3)


def test_games_before_all_tables_have_no_functions():
  found, types = drones(80949)
  assert commands.resolve(found, 34783, types) == commands.Resolution(0, [None] * 3, 0, 0)
