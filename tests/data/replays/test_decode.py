"""Replays to rows: a synthetic game read literally, its variations, and real games."""

import pytest

from starleague.agent import types
from starleague.data.replays import decode, protocol, refusals
from tests.data.replays import games
from tests.data.replays.games import REAL, Game, needs_real


def decoded(game=None, **files):
  return decode.decode((game or Game()).replay(**files), "a.SC2Replay")


def test_the_game_of_a_replay():
  game = decoded().game
  assert (game.map, game.width, game.height, game.version, game.build, game.protocol) == (
    "Test LE", 160, 176, "4.10.0.75689", 75689, 75689)
  assert (game.loops, game.matchup, game.winner, game.unread) == (2000, "PvZ", 1, "")
  assert (game.commands, game.resolved, game.started) == (4, 4, "2019-04-17T18:40:00")


def test_the_players_of_a_replay():
  """Names have no markup, races are those of the town halls, unranked players have no MMR."""
  ann, bob = decoded().players
  assert (ann.name, ann.race, ann.opponent, ann.mmr, ann.result) == (
    "Ann", "protoss", "zerg", 4321, "win")
  assert (bob.name, bob.race, bob.opponent, bob.mmr, bob.result) == (
    "Bob", "zerg", "protoss", None, "loss")
  assert (ann.start_x, ann.start_y, ann.side) == (40.5, 30.5, 0)
  assert (bob.start_x, bob.start_y, bob.side) == (120.5, 130.5, 1)
  assert (ann.units, bob.units) == (["Gateway", "Pylon", "Zealot"], ["Lair", "SpawningPool"])
  assert (ann.upgrades, bob.upgrades) == (["Blink"], ["MetabolicBoost"])
  assert (ann.actions, ann.actions_by_minute) == (5, [5, 0])
  assert ann.action_loops == [2, 6, 290, 400, 1990] and bob.action_loops == [510, 1990]


def test_the_build_order_of_a_replay():
  """The start, workers, supply, hallucinations and a gateway that changes its mode are left out."""
  rows = [row for row in decoded().builds if row.order >= 0]
  assert [(row.player, row.order, row.name, row.loop, row.kind) for row in rows] == [
    (1, 0, "Gateway", 448, "placed"), (1, 1, "Zealot", 900, "born"),
    (2, 0, "SpawningPool", 600, "placed"), (2, 1, "Lair", 1200, "morphed")]
  assert [(row.x, row.y, row.column, row.row) for row in rows] == [
    # floor(256 / 176 * x), floor(256 / 176 * (176 - y))
    (48.5, 30.5, 70, 211), (47.5, 28.5, 69, 214), (126.5, 130.5, 184, 66), (120.5, 130.5, 175, 66)]
  pylon, = (row for row in decoded().builds if row.name == "Pylon")
  assert (pylon.x, pylon.y, pylon.order) == (44.0, 36.0, -1)  # of even width


def test_the_commands_of_a_replay():
  """A click is smart, a repeated click keeps its ability, two commands of a game loop are one."""
  rows = decoded().commands
  assert [(row.player, row.loop, row.delay, row.function, row.repeat) for row in rows] == [
    (1, 6, 284, "Smart_unit", 0), (1, 290, 110, "Build_Pylon_pt", 0),
    (1, 400, 1600, "Build_Pylon_pt", 0), (2, 510, 1490, "Train_Drone_quick", 1)]
  assert [row.units for row in rows] == [
    [games.tag(11), games.tag(12)], [games.tag(11)], [games.tag(11)], [games.tag(22)]]
  assert (rows[0].target, rows[0].target_type) == (games.tag(1), "MineralField")
  assert [(row.x, row.y) for row in rows] == [(1, 2), (44, 36), (44, 40), (None, None)]


def test_queued_commands_and_functions_by_target():
  events = [games.select(5, 0, 11), games.command(6, 0, ("attack", 0), (1, 1), flags=0x102),
            games.command(7, 0, ("attack", 0), 20), games.command(8, 0, ("stop", 0)),
            games.command(9, 0, ("attack", 5), (1, 1))]
  rows = decoded(Game(events=tuple(events))).commands
  assert [(row.function, row.queued) for row in rows] == [
    ("Attack_pt", True), ("Attack_unit", False), ("Stop_quick", False), (None, False)]
  assert decoded(Game(events=tuple(events))).game.resolved == 3


def test_observers_and_shuffled_lobbies():
  """Users of observers come between; the list of players may have another order."""
  players = (Game.players[1], games.player(b"Caster", 2, observe=1), Game.players[0])
  users = ({"m_name": b"Caster"}, *Game.users)
  tracker = (games.setup(1, 1), games.setup(2, 2), *Game.tracker[2:])
  events = tuple((loop, user + 1, *rest) for loop, user, *rest in Game.events)
  found = decoded(Game(players=players, users=users, tracker=tracker, events=events))
  expected = decoded()
  assert [row._replace(replay="") for row in found.players] == [
    row._replace(replay="") for row in expected.players]
  assert [row[1:] for row in found.commands] == [row[1:] for row in expected.commands]


def test_computer_opponents_have_no_commands():
  players = (Game.players[0], games.player(b"A.I. 1 (Very Easy)", 1, control=3, result=2))
  tracker = (games.setup(1, 0), games.setup(2, None), *Game.tracker[2:])
  found = decoded(Game(players=players, users=Game.users[:1], tracker=tracker))
  assert [player.computer for player in found.players] == [False, True]
  assert [player.commands for player in found.players] == [3, 0]
  assert found.players[1].units == ["Lair", "SpawningPool"]


def test_missing_results_follow_from_who_left_first():
  players = tuple({**player, "m_result": 0} for player in Game.players)
  found = decoded(Game(players=players))
  assert [player.result for player in found.players] == ["win", "loss"]
  found = decoded(Game(players=players, events=Game.events[:-1]))
  assert [player.result for player in found.players] == ["unknown", "unknown"]
  assert found.game.winner == -1
  found = decoded(Game(players=({**players[0], "m_result": 2}, players[1])))
  assert [player.result for player in found.players] == ["loss", "win"]


def test_users_of_a_resumed_game():
  """After a resume, users have the indices of the new lobby."""
  events = [games.select(5, 0, 11), games.command(6, 0, ("stop", 0)),
            (6, 0, "HijackReplayGame", {"m_userInfos": [
              {"m_gameUserId": 3, "m_observe": 0, "m_name": b"Ann"},
              {"m_gameUserId": 2, "m_observe": 1, "m_name": b"Caster"},
              {"m_gameUserId": 4, "m_observe": 0, "m_name": b"Bob"}], "m_method": 0}),
            games.command(20, 3, ("stop", 0)), games.command(21, 4, ("stop", 0))]
  rows = decoded(Game(events=tuple(events))).commands
  expected = [(1, 6, [games.tag(11)]), (1, 20, [games.tag(11)]), (2, 21, [])]
  assert [(row.player, row.loop, row.units) for row in rows] == expected
  infos = events[2][3]["m_userInfos"]
  events[2][3]["m_userInfos"] = infos[::-1]  # names count, not the order
  found = decoded(Game(events=tuple(events)))
  assert [(row.player, row.loop, row.units) for row in found.commands] == expected
  for info in infos:
    info["m_name"] = b"Renamed"
  events[2][3]["m_userInfos"] = infos
  found = decoded(Game(events=tuple(events)))
  assert [(row.player, row.loop, row.units) for row in found.commands] == expected


def test_setups_of_observers_are_left_out():
  tracker = (games.setup(3, 2), *Game.tracker)
  assert [row.name for row in decoded(Game(tracker=tracker)).players] == ["Ann", "Bob"]


@pytest.mark.parametrize("build", [27950, 32283, 51702, 55505, 65895, 78285, 81009, 90136, 98310])
def test_builds_of_all_years(build):
  """From the first expansion with these events to the newest build."""
  smart = {"m_cmdFlags": 0x100, "m_data": {"None": None}, "m_sequence": 1, "m_abil": None}
  found = decoded(Game(build=build, events=(games.select(5, 0, 11), (6, 0, "Cmd", smart))))
  assert (found.game.protocol, found.game.unread) == (build, "")
  assert [row.units for row in found.commands] == [[games.tag(11)]]
  assert [row.name for row in found.builds if row.order >= 0][:2] == ["Gateway", "Zealot"]


@pytest.mark.parametrize("game, reason, detail", [
  (Game(players=(*Game.players, games.player(b"Cy", 2))), refusals.NOT_ONE_ON_ONE, "found 3"),
  (Game(players=Game.players[:1]), refusals.NOT_ONE_ON_ONE, "found 1"),
  (Game(players=(Game.players[0], games.player(b"Bob", 0))), refusals.NOT_ONE_ON_ONE, "one team"),
  (Game(tracker=Game.tracker[:4]), refusals.NOT_MELEE, "player 1 has none"),
  (Game(size=(1, 176)), refusals.DAMAGED, "a map of 1 x 176")])
def test_other_games_are_refused(game, reason, detail):
  with pytest.raises(refusals.Refusal, match=detail) as error:
    decoded(game)
  assert error.value.reason == reason


def test_files_without_tracker_events_are_refused():
  with pytest.raises(refusals.Refusal, match="no replay.tracker.events") as error:
    decoded(tracker_events=None)
  assert error.value.reason == refusals.NO_TRACKER


def test_a_damaged_action_stream_costs_the_commands_only():
  stream = Game().files()["replay.game.events"]
  found = decoded(game_events=stream[:-3])
  assert found.game.unread.startswith("game events: ") and found.commands == []
  assert found.players[0].units == decoded().players[0].units


def test_builds_without_tables_use_the_nearest():
  assert protocol.nearest_builds(75689)[0] == 75689
  assert protocol.nearest_builds(75690)[0] == 75689
  assert protocol.nearest_builds(38215)[0] == 51702  # the first table of Legacy of the Void
  assert protocol.nearest_builds(32000)[0] == 32283
  found = decoded(Game(build=75700))
  assert (found.game.build, found.game.protocol) == (75700, 75689)


def test_local_maps_have_no_handles():
  """Games of agents differ by the checksum of their map."""
  found = [decoded(Game(handles=(), checksum=checksum)).game for checksum in (1, 2)]
  assert [game.map_digest for game in found] == ["00000001", "00000002"]
  assert decoded().game.map_digest == "00" * 32


def test_both_files_of_a_game_have_one_key():
  """The winner's file ends later, and titles are localised."""
  own = decoded().game
  other = decoded(Game(loops=2100, title="테스트".encode(), events=Game.events[:-1])).game
  assert other.key == own.key and other.replay != own.replay
  assert decoded(Game(seed=8)).game.key != own.key


def replays(*patterns):
  found = sorted(path for pattern in patterns for path in REAL.glob(pattern))
  assert found
  return found


@needs_real
@pytest.mark.parametrize("name", ["02", "03", "04", "05", "06"])
def test_action_loops_are_those_of_deepmind(name):
  """DeepMind's list of the game loops at which player 1 of each replay acted."""
  path = REAL / "pysc2" / f"replay_{name}.SC2Replay"
  listed = path.with_suffix(".skips.txt").read_text().splitlines()[0]
  found = decode.decode(path.read_bytes(), path.name).players[0].action_loops
  assert found == [int(loop) for loop in listed.split(",")]


@needs_real
def test_a_game_of_agents():
  path = REAL / "pysc2" / "replay_02.SC2Replay"
  found = decode.decode(path.read_bytes(), path.name)
  assert (found.game.map, found.game.version, found.game.matchup, found.game.winner) == (
    "Cyber Forest LE", "4.10.0.75689", "ZvP", 2)
  assert [row.name for row in found.players] == ["Supervised", "temp_x1_5_beast3f_6571236_final"]
  order = [(row.name, round(row.loop / types.GAME_LOOPS_PER_SECOND, 1), row.column, row.row)
           for row in found.builds if row.player == 2 and row.order >= 0]
  assert len(order) == 20
  assert order[:6] == [
    ("Gateway", 43.8, 63, 100), ("Assimilator", 52.7, 42, 66), ("Nexus", 86.2, 50, 98),
    ("CyberneticsCore", 95.4, 59, 103), ("Assimilator", 105.5, 56, 52), ("Stargate", 150.4, 59, 59)]


@needs_real
def test_localised_replays_and_ratings():
  path = REAL / "di-star" / "replay_4.10.3.SC2Replay"
  found = decode.decode(path.read_bytes(), path.name)
  assert [(row.name, row.race, row.mmr, row.result) for row in found.players] == [
    ("АнтиПикап", "protoss", 3696, "win"), ("Wouane", "terran", 3974, "loss")]
  assert found.game.map == "Эфемерон РВ"


@needs_real
@pytest.mark.slow
def test_real_replays_of_all_versions():
  """One file lacks its tracker events; all others decode, and their commands have functions."""
  shares, reasons = {}, {}
  for path in replays("*/*.SC2Replay"):
    try:
      game = decode.decode(path.read_bytes(), path.name).game
    except refusals.Refusal as refusal:
      reasons[path.name] = refusal.reason
    else:
      assert game.unread == "" and game.commands > 100
      shares[path.name] = game.resolved / game.commands
  assert reasons == {"replay_4.10.0.SC2Replay": refusals.NO_TRACKER}
  assert len(shares) == 33
  assert min(shares.values()) > 0.97 and sum(shares.values()) / 33 > 0.995
