"""Replays to rows: a synthetic game read literally, its variations, and real games."""

import pytest

from starleague.agent import types
from starleague.data.replays import decode, refusals
from tests.data.replays import games
from tests.data.replays.games import REAL, Game, needs_real


def test_the_game_of_a_replay():
  game = games.decoded().game
  assert (game.map, game.width, game.height, game.version, game.build, game.protocol) == (
    "Test LE", 160, 176, "4.10.0.75689", 75689, 75689)
  assert (game.loops, game.matchup, game.winner, game.unread) == (2000, "PvZ", 1, "")
  assert (game.commands, game.resolved, game.started) == (4, 4, "2019-04-17T18:40:00")


def test_the_players_of_a_replay():
  """Names have no markup, races are those of the town halls, unranked players have no MMR."""
  ann, bob = games.decoded().players
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
  rows = [row for row in games.decoded().builds if row.order >= 0]
  assert [(row.player, row.order, row.name, row.loop, row.kind) for row in rows] == [
    (1, 0, "Gateway", 448, "placed"), (1, 1, "Zealot", 900, "born"),
    (2, 0, "SpawningPool", 600, "placed"), (2, 1, "Lair", 1200, "morphed")]
  assert [(row.x, row.y, row.column, row.row) for row in rows] == [
    # floor(256 / 176 * x), floor(256 / 176 * (176 - y))
    (48.5, 30.5, 70, 211), (47.5, 28.5, 69, 214), (126.5, 130.5, 184, 66), (120.5, 130.5, 175, 66)]
  pylon, = (row for row in games.decoded().builds if row.name == "Pylon")
  assert (pylon.x, pylon.y, pylon.order) == (44.0, 36.0, -1)  # of even width


def test_the_commands_of_a_replay():
  """A click is smart, a repeated click keeps its ability, two commands of a game loop are one."""
  rows = games.decoded().commands
  assert [(row.player, row.loop, row.delay, row.function, row.repeat) for row in rows] == [
    (1, 6, 284, "Smart_unit", 0), (1, 290, 110, "Build_Pylon_pt", 0),
    (1, 400, 1600, "Build_Pylon_pt", 0), (2, 510, 1490, "Train_Drone_quick", 1)]
  assert [row.units for row in rows] == [
    [games.tag(11), games.tag(12)], [games.tag(11)], [games.tag(11)], [games.tag(22)]]
  assert (rows[0].target, rows[0].target_type) == (games.tag(1), "MineralField")
  assert [(row.x, row.y) for row in rows] == [(1, 2), (44, 36), (44, 40), (None, None)]


def test_a_damaged_action_stream_costs_the_commands_only():
  stream = Game().files()["replay.game.events"]
  found = games.decoded(game_events=stream[:-3])
  assert found.game.unread.startswith("game events: ") and found.commands == []
  assert found.players[0].units == games.decoded().players[0].units


def test_local_maps_have_no_handles():
  """Games of agents differ by the checksum of their map."""
  found = [games.decoded(Game(handles=(), checksum=checksum)).game for checksum in (1, 2)]
  assert [game.map_digest for game in found] == ["00000001", "00000002"]
  assert games.decoded().game.map_digest == "00" * 32


def test_both_files_of_a_game_have_one_key():
  """The winner's file ends later, and titles are localised."""
  own = games.decoded().game
  other = games.decoded(Game(loops=2100, title="테스트".encode(), events=Game.events[:-1])).game
  assert other.key == own.key and other.replay != own.replay
  assert games.decoded(Game(seed=8)).game.key != own.key


def replays(*patterns):
  found = sorted(path for pattern in patterns for path in REAL.glob(pattern))
  assert found
  return found


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
