"""The benchmark of growth: its measurements, tables, files, and each part at small sizes."""

import contextlib
import csv
import itertools
import subprocess
import types
import xml.etree.ElementTree as ElementTree

import jax
import pytest

from benchmarks import growth
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS

ROWS = [growth.Row(1, 100.0, 90.0, 110.0, 1.0), growth.Row(4, 1200.0, 1000.0, 1300.0, 12.0)]


class Clock:
  """A clock that only work moves."""

  now = 0.0

  def perf_counter(self):
    return self.now

  def work(self, seconds):
    self.now += seconds


def test_a_rate_leaves_out_what_is_untimed(monkeypatch):
  clock = Clock()
  monkeypatch.setattr(growth, "time", clock)
  runner = growth.Runner(lambda: clock.work(0.25), 10, lambda: clock.work(0.5))
  # Calls begin at 0, 0.75 and 1.5 s: three of 10 units in 0.75 timed seconds.
  assert growth.rate(runner, 2.0) == 40.0 and clock.now == 2.25
  assert growth.rate(runner, 0.0) == 40.0 and clock.now == 3.0


def test_sizes_take_turns_in_alternate_order(monkeypatch):
  clock, order, closed = Clock(), [], []
  monkeypatch.setattr(growth, "time", clock)
  # The first call of each size compiles; in the three rounds the machine has these speeds.
  slowness = iter([9, 9, 1, 1, 2, 2, 4, 4])

  def make(size, stack):
    stack.callback(closed.append, size)

    def once():
      order.append(size)
      clock.work(next(slowness) * size)

    return growth.Runner(once, 8 * size * size)

  rows = growth.measure(growth.Part("", "", "", (), make), (1, 4), 3, 0.0)
  assert order == [1, 4, 1, 4, 4, 1, 1, 4] and sorted(closed) == [1, 4]
  # The rates of size 1 are 8, 4 and 2, those of size 4 four times as high.
  assert rows == [(1, 4.0, 2.0, 8.0, 1.0), (4, 16.0, 8.0, 32.0, 4.0)]


def test_a_table_has_rates_per_unit_where_sensible():
  assert growth.table(growth.PARTS["games"], ROWS) == [
    "| games | environment steps/s | range | ratio to 1 | environment steps/s per game |",
    "| --- | --- | --- | --- | --- |",
    "| 1 | 100 | 90 to 110 | 1.00 | 100.0 |",
    "| 4 | 1,200 | 1,000 to 1,300 | 12.00 | 300.0 |"]
  assert growth.table(growth.PARTS["players"], ROWS)[0] == (
    "| players | matches/s | range | ratio to 1 |")


def test_a_part_leaves_a_table_and_a_picture(tmp_path):
  growth.write("games", growth.PARTS["games"], ROWS, tmp_path)
  assert sorted(path.name for path in tmp_path.iterdir()) == ["growth_games.csv",
                                                              "growth_games.svg"]
  assert (tmp_path / "growth_games.csv").read_text() == (
    "games,environment steps/s,lowest,highest,relative\n"
    "1,100.0,90.0,110.0,1.0\n4,1200.0,1000.0,1300.0,12.0\n")
  root = ElementTree.parse(tmp_path / "growth_games.svg").getroot()
  assert len(root.findall(".//{*}circle")) == 2


def test_the_coordinator_is_measured(tmp_path, capsys):
  growth.main(["players", "--sizes", "4,1,4", "--rounds", "2", "--seconds", "0",
               "--out", str(tmp_path / "new")])
  with open(tmp_path / "new" / "growth_players.csv") as file:
    rows = list(csv.DictReader(file))
  assert [row["players"] for row in rows] == ["1", "4"] and rows[0]["relative"] == "1.0"
  for row in rows:
    lowest, middle, highest = (float(row[name]) for name in ("lowest", "matches/s", "highest"))
    assert 0 < lowest <= middle <= highest
    assert middle == pytest.approx((lowest + highest) / 2)  # the median of two rounds
  assert capsys.readouterr().out.startswith("players: Coordinator; 2 rounds, ")


@pytest.mark.parametrize("arguments, message", [
  (["game"], "part game: expected one of games, entities, unroll, players, devices"),
  (["games", "--sizes", "1,0"], "--sizes: expected whole numbers from 1, as 1,4,16; found 1,0"),
  (["games", "--sizes", "1,-4"], "--sizes: expected whole numbers from 1, as 1,4,16; found 1,-4"),
  (["games", "--sizes", ","], "--sizes: expected whole numbers from 1, as 1,4,16; found ,"),
  (["unroll", "--sizes", "16,48"], "--sizes: unroll needs divisors of 512, found 48"),
  (["devices", "--sizes", "64"], "--sizes: devices needs divisors of 32, found 64"),
  (["devices", "--sizes", "16", "--here"],
   "devices: expected 16, found 8; leave out --here"),
  (["--sizes", "1"],
   "--sizes: expected one part beside it, found games, entities, unroll, players, devices"),
  (["players", "--rounds", "0"], "--rounds: expected at least 1, found 0"),
  (["players", "--rounds", "x"],
   "argument --rounds: invalid int value: 'x'; --help lists the options")])
def test_wrong_arguments_are_one_line(arguments, message):
  with pytest.raises(SystemExit) as raised:
    growth.main(arguments)
  assert raised.value.code == f"error: {message}"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
  (tmp_path / "file").touch()
  with pytest.raises(SystemExit, match="error: .*file"):
    growth.main(["players", "--out", str(tmp_path / "file")])


def test_devices_are_measured_in_a_process_that_has_them(monkeypatch, tmp_path):
  started = []

  def run(command, *, check, cwd, env):
    started.append((command[1:], env))
    return types.SimpleNamespace(returncode=3)

  monkeypatch.setattr(subprocess, "run", run)
  monkeypatch.setenv("XLA_FLAGS", "--first")
  with pytest.raises(SystemExit) as raised:
    growth.main(["devices", "--sizes", "4,2", "--rounds", "2", "--out", str(tmp_path)])
  assert raised.value.code == 3
  (command, environment), = started
  assert command == ["-m", "benchmarks.growth", "devices", "--here", "--out", str(tmp_path),
                     "--sizes", "2,4", "--rounds", "2", "--seconds", "0.5"]
  assert environment["XLA_FLAGS"] == "--first --xla_force_host_platform_device_count=4"
  assert environment["JAX_PLATFORMS"] == "cpu"


def made(name, size):
  """Returns a part's runner and the outputs of a call."""
  runner = growth.PARTS[name].make(size, contextlib.ExitStack())
  return runner, jax.block_until_ready(runner.once())


@pytest.mark.slow
def test_games_are_played_in_one_batch(monkeypatch):
  monkeypatch.setattr(growth, "CHUNK", 6)
  runner, (_, (observation, _)) = made("games", 3)
  assert runner.units == 2 * 3  # two steps of three games
  assert observation.entities.shape[:3] == (3, 2, GAME_CONFIGS["mini"].max_entities)


@pytest.mark.slow
def test_the_forward_pass_has_so_many_entities(monkeypatch):
  monkeypatch.setattr(growth, "UNROLL_LENGTH", 2)
  runner, output = made("entities", 12)
  assert runner.units == 2 * 4
  assert output.logits.target_unit.shape == (2, 4, 12)


@pytest.mark.slow
def test_the_update_has_equal_steps_at_each_length_and_number_of_devices(monkeypatch):
  monkeypatch.setattr(growth, "UNROLL_LENGTH", 2)
  monkeypatch.setattr(growth, "BATCH", 4)
  lengths = []
  make = growth.agent_benchmark.make_trajectories
  monkeypatch.setattr(growth.agent_benchmark, "make_trajectories", lambda config, length, size: (
    lengths.append((length, size)), make(config, length, size))[1])
  for (name, size), shape in zip((("unroll", 4), ("devices", 2)), ((5, 2), (3, 4)), strict=True):
    runner, metrics = made(name, size)
    assert runner.units == 8 and lengths.pop() == shape
    devices = itertools.chain(*(x.devices() for x in jax.tree.leaves(metrics)))
    assert len(set(devices)) == (2 if name == "devices" else 1)
