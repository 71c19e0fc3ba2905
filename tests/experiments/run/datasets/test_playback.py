"""Datasets of replays that the game plays back; a stand-in plays them here."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pysc2")
pytest.importorskip("pyarrow")

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.common.errors import UserError
from starleague.data import games, wire
from starleague.data.replays.records import BuildRow, CommandRow, Decoded, GameRow, PlayerRow
from starleague.data.replays.refusals import Refusal
from starleague.environments.sc2 import replays
from starleague.environments.sc2.client import installation
from starleague.environments.sc2.converter.setting import make_setting
from starleague.experiments.run.datasets import playback
from tests.environments.sc2 import recorded
from tests.environments.sc2.replay_controllers import Controller, command

ACTIONS = ({10: [command("Train_Marine_quick")], 70: [command("Effect_Stim_quick")]},
           {30: [command("Attack_pt", place=(64.5, 32.5))] * 2})


def make_job(tmp_path, name, end=200, map_name="Home", digest=""):
  path = tmp_path / f"{name}.SC2Replay"
  path.write_bytes(name.encode())
  fields = dict.fromkeys(GameRow._fields, 0) | {
    "replay": name, "file": str(path), "map": map_name, "map_digest": digest or map_name,
    "loops": end, "version": "4.10", "unread": "", "key": name}
  players = [PlayerRow(**dict.fromkeys(PlayerRow._fields, 0) | {
    "player": i + 1, "name": f"player {i}", "race": race, "opponent": other, "mmr": mmr, "side": i,
    "computer": False, "action_loops": [*ACTIONS[i], end]})
    for i, (race, other, mmr) in enumerate([("protoss", "terran", 4100),
                                            ("terran", "protoss", None)])]
  return playback.Job(path, Decoded(GameRow(**fields), players, [], []))


def play(replay, decoded, config):
  """Plays by the stand-in; the replay "broken" has no end."""
  end = decoded.game.loops
  players = [Controller(i + 1, end, ACTIONS[i]) for i in (0, 1)]
  schedule = replays.plan([player.action_loops for player in decoded.players], end)

  def frames():
    for loop in schedule.frames:
      for controller in players:
        controller.loop = loop
      yield tuple(controller.observe() for controller in players)

  settings = [make_setting(config, players[0].game_info(), player.player,
                           mmr=playback.mmr_of(player.mmr)) for player in decoded.players]
  for step in replays.convert(replays.align(frames(), schedule), settings):
    if replay == b"broken" and step.last:
      return
    yield step


def test_replays_become_a_dataset_of_games(tmp_path):
  jobs = [make_job(tmp_path, "a", map_name="Away"), make_job(tmp_path, "broken"),
          make_job(tmp_path, "c")]
  refused = []
  found = playback.record(
    tmp_path / "set", jobs, "mini", play=play,
    refuse=lambda path, reason: refused.append((path.name, reason)))
  assert (found.games, found.episodes, found.tier) == (2, 4, "sc2")
  assert [name for name, _ in refused] == ["broken.SC2Replay"]
  assert "stopped before the game's end" in refused[0][1]
  dataset = games.read(tmp_path / "set", "mini")
  episodes = dataset.episodes
  assert dataset.maps == ("Away", "Home") and episodes.map_index.tolist() == [0, 0, 1, 1]
  assert episodes.game.tolist() == [0, 0, 2, 2] and episodes.player.tolist() == [0, 1, 0, 1]
  assert episodes.mmr.tolist() == [4100, 3500] * 2 and episodes.result.tolist() == [-1, 1] * 2
  assert episodes.race.tolist() == [3, 1] * 2 and episodes.side.tolist() == [0, 1] * 2


def test_a_map_has_one_title_whatever_the_language_of_its_files(tmp_path):
  """As in a library of z: the most frequent title in ASCII."""
  jobs = [make_job(tmp_path, name, map_name=title, digest=digest) for name, title, digest in (
    ("a", "\uc0ac", "1"), ("b", "Lunch LE", "1"), ("c", "Acid", "2"), ("d", "\uc0ac", "1"))]
  playback.record(tmp_path / "set", jobs, "mini", play=play)
  dataset = games.read(tmp_path / "set")
  assert dataset.maps == ("Acid", "Lunch LE")
  assert dataset.episodes.map_index.tolist() == [1, 1, 1, 1, 0, 0, 1, 1]


def test_a_lost_game_ends_the_command_and_the_same_one_continues(tmp_path):
  """The third replay is left out: its failure is its own. The fourth is played the next time."""
  jobs = [make_job(tmp_path, name) for name in ("a", "b", "broken", "c", "d")]
  refused, played, lost = [], [], [b"c"]

  def play_some(replay, decoded, config):
    played.append(replay)
    if replay in lost:
      raise playback.GameLostError("the connection is lost")
    return play(replay, decoded, config)

  def record():
    return playback.record(tmp_path / "set", jobs, "mini", play=play_some,
                           refuse=lambda path, reason: refused.append(path.name))

  with pytest.raises(playback.GameLostError, match="^the connection is lost$"):
    record()
  assert games.read(tmp_path / "set").episodes.game.tolist() == [0, 0, 1, 1]
  lost.clear()
  assert record().games == 4
  assert games.read(tmp_path / "set").episodes.game.tolist() == [0, 0, 1, 1, 3, 3, 4, 4]
  assert played == [b"a", b"b", b"broken", b"c", b"broken", b"c", b"d"]
  assert refused == ["broken.SC2Replay"] * 2


def test_a_game_that_is_lost_before_the_first_one_is_recorded_is_started_again(tmp_path):
  def fail(replay, decoded, config):
    raise playback.GameLostError("the game did not start")

  job = make_job(tmp_path, "a")
  with pytest.raises(playback.GameLostError):
    playback.record(tmp_path / "set", [job], "mini", play=fail)
  assert playback.record(tmp_path / "set", [job], "mini", play=play).games == 1


def test_failures_of_the_game_and_of_a_replay_are_told_apart(tmp_path, monkeypatch):
  from pysc2.lib import protocol
  job = make_job(tmp_path, "a")
  monkeypatch.setattr(installation, "find", lambda: tmp_path)
  for error, expected, message in (
      (protocol.ConnectionError("Websocket timed out."), playback.GameLostError,
       f"{job.path} (version 4.10, map Home): ConnectionError: Websocket timed out.; expected the "
       "game to start and to answer, because a dataset continues after its newest game: start the "
       "command again. If this file fails each time, record the others into another folder."),
      (protocol.ProtocolError("Error in RPC"), playback.PlaybackError,
       f"{job.path} (version 4.10, map Home): ProtocolError: Error in RPC")):
    def fail(config, error=error):
      raise error

    monkeypatch.setattr(replays, "open_stream", fail)
    with pytest.raises(expected) as found:
      list(playback.play_back(b"a", job.decoded, None))
    assert str(found.value) == message and found.value.__cause__ is error


def test_the_steps_of_a_dataset_are_those_of_the_replay(tmp_path):
  job = make_job(tmp_path, "a")
  playback.record(tmp_path / "set", [job], "mini", play=play)
  dataset = games.read(tmp_path / "set")
  fields = wire.layout(dataset.config).fields
  rows = [np.cumsum(x, axis=0, dtype=x.dtype) if x.dtype != np.float32 else x
          for x in games.steps(dataset, 0)]
  columns = wire.Columns(*rows)

  def values(path):
    field = fields[path]
    return getattr(columns, field.column)[:, field.slice]

  loops = values("observation.game_loop")[:, 0].tolist()
  assert loops == [0, 10, 70, 197, 200]
  names = [v.FUNCTIONS.names[i] for i in values("action.function")[:, 0]]
  assert names == ["no_op", "Train_Marine_quick", "Effect_Stim_quick", "no_op", "no_op"]
  assert values("action.delay")[:, 0].tolist() == [10, 60, 127, 3, 0]  # the game ends 3 loops later
  assert values("reward")[:, 0].tolist() == [0, 0, 0, -1, 0]
  assert values("discount")[:, 0].tolist() == [1, 1, 1, 0, 0]
  assert values("weight")[:, 0].tolist() == [1, 1, 1, 1, 0]
  minerals = values("observation.player")[:, types.PLAYER_COLUMNS.index("minerals")]
  assert minerals.tolist() == [100 + loop for loop in loops]
  batch = next(games.in_order(dataset, np.array([0]), 1, 4, seed=0))
  trajectory = wire.unpack(batch.packed, dataset.config)
  z = trajectory.steps.observation.statistics
  assert np.asarray(z.units)[:, 0, v.UNIT_TYPES.index("Marine")].all()
  stim = v.EFFECT_FUNCTIONS.tolist().index(v.FUNCTIONS.index("Effect_Stim_quick"))
  assert np.asarray(z.effects)[:, 0, stim].all()


def test_recording_continues_with_the_next_replay(tmp_path):
  jobs = [make_job(tmp_path, "a"), make_job(tmp_path, "c")]
  seen = []

  def stop(written):
    raise KeyboardInterrupt

  def once(replay, decoded, config):
    seen.append(replay)
    return play(replay, decoded, config)

  with pytest.raises(KeyboardInterrupt):
    playback.record(tmp_path / "set", jobs, "mini", stop, play=once)
  assert playback.record(tmp_path / "set", jobs, "mini", play=once).games == 2
  assert playback.record(tmp_path / "set", jobs, "mini", play=once).games == 2
  assert seen == [b"a", b"a", b"c"]  # the first part was not complete


def test_without_the_game_the_error_names_the_installation(tmp_path, monkeypatch):
  monkeypatch.setenv("SC2PATH", str(tmp_path))
  with pytest.raises(installation.InstallationError, match="SC2PATH"):
    playback.record(tmp_path / "set", [make_job(tmp_path, "a")], "mini")


def test_jobs_do_not_hold_commands_and_builds(tmp_path, monkeypatch):
  job = make_job(tmp_path, "a")
  command_row = CommandRow(**dict.fromkeys(CommandRow._fields, 0))
  build_row = BuildRow(**dict.fromkeys(BuildRow._fields, 0))
  decoded = job.decoded._replace(builds=[build_row] * 5, commands=[command_row] * 7)
  monkeypatch.setattr(playback.workers, "decode_all",
                      lambda paths, processes: [(str(job.path), decoded)])
  (found,), refused = playback.jobs([tmp_path])
  assert found == job and not refused
  assert (found.decoded.builds, found.decoded.commands) == ([], [])


def find_jobs(monkeypatch, found):
  """Returns the jobs of replays, by path, that are decoded to rows or refusals."""
  monkeypatch.setattr(playback.reading, "find", lambda folders: list(found))
  monkeypatch.setattr(playback.reading, "unreadable", lambda path: None)
  monkeypatch.setattr(playback.workers, "decode_all",
                      lambda paths, processes: ((path, found[Path(path)]) for path, _ in paths))
  return playback.jobs(["folder"])


def test_a_game_with_several_files_is_one_job(tmp_path, monkeypatch):
  one, other, copy = (make_job(tmp_path, name) for name in ("a", "b", "c"))

  def of_game(job, key, **changes):
    return job.decoded._replace(game=job.decoded.game._replace(key=key, **changes))

  found, refused = find_jobs(monkeypatch, {
    # The first file of the second game cannot be played back: its other one can.
    one.path: of_game(one, "x"), other.path: of_game(other, "y", unread="damaged"),
    copy.path: of_game(copy, "x"), copy.path.with_name("d"): of_game(copy, "y")})
  assert [job.path.name for job in found] == ["a.SC2Replay", "d"]
  assert refused == [(other.path, "damaged"),
                     (copy.path, f"duplicate: another file of the game of {one.path}")]


@pytest.mark.parametrize("reason", [
  "time limit", "memory limit", "decoder died", "unreadable", "damaged"])
def test_a_replay_that_may_be_read_the_next_time_ends_the_search(tmp_path, monkeypatch, reason):
  """Without it, the dataset would be another one, which the next run could not continue."""
  one, other = make_job(tmp_path, "a"), make_job(tmp_path, "b")
  files = {one.path: Refusal(reason, "the detail"), other.path: other.decoded}
  if reason == "damaged":
    assert find_jobs(monkeypatch, files) == ([other], [(one.path, "the detail")])
  else:
    with pytest.raises(UserError, match=(
        f"^{one.path}: {reason}: the detail; expected to read every replay, .*: start the command "
        "again, or move this file to another folder.$")):
      find_jobs(monkeypatch, files)


def test_an_unreadable_replay_is_named_before_any_is_decoded(tmp_path, monkeypatch):
  make_job(tmp_path, "a")
  (tmp_path / "b.SC2Replay").symlink_to(tmp_path / "missing")
  monkeypatch.setattr(playback.workers, "decode_all", None)
  with pytest.raises(UserError, match="b.SC2Replay: unreadable: cannot be read: No such file"):
    playback.jobs([tmp_path])


@pytest.mark.parametrize("found, expected", [
  (None, 3500), (0, 3500), (-36400, 3500), (1, 1), (32767, 32767), (32768, 3500), (40000, 3500)])
def test_impossible_ratings_are_unknown(found, expected):
  assert playback.mmr_of(found) == expected


def test_a_replay_with_an_impossible_rating_is_recorded(tmp_path):
  job = make_job(tmp_path, "a")
  first, second = job.decoded.players
  job = job._replace(decoded=job.decoded._replace(
    players=[first._replace(mmr=40000), second]))
  assert playback.record(tmp_path / "set", [job], "mini", play=play).games == 1
  assert games.read(tmp_path / "set").episodes.mmr.tolist() == [3500, 3500]


@recorded.needs_data
@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 4])
def test_real_replays_stop_where_pysc2_says(number):
  folder = recorded.DATA / "replays" / "pysc2"
  (job,), _ = playback.jobs([folder / f"replay_0{number}.SC2Replay"])
  end = job.decoded.game.loops
  schedule = replays.plan([player.action_loops for player in job.decoded.players], end)
  listed = (folder / f"replay_0{number}.skips.txt").read_text().split(",")
  expected = {loop for loop in map(int, listed) if loop < end}
  assert expected in schedule.acts and len(expected) > 1000


@recorded.needs_data
@pytest.mark.slow
def test_games_against_the_computer_are_left_out():
  folder = recorded.DATA / "replays" / "pysc2"
  found, refused = playback.jobs([folder / "replay_05.SC2Replay"])
  assert not found and "a player is a computer" in refused[0][1]
