"""The coordinator over gRPC: errors, deadlines, restarts, and kills under load."""

import collections
import json
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import grpc
import pytest
from absl import logging

from starleague.common.database import Database
from starleague.league import messages, players, server
from starleague.league.client import GrpcTransport, LeagueClient
from starleague.league.coordinator import Coordinator
from starleague.league.league_file import open_league_file
from starleague.league.payoff import WIN, GameResult
from starleague.league.players import LeagueError
from starleague.league.reporting import GamesReport, PlayedGame
from tests.league.leagues import EXPLOITER, FIRST, MAIN, free_port
from tests.processes import start_together

KILLS, CLIENTS = 20, 3


@pytest.fixture
def client(serving):
  """A client over the network."""
  connected = LeagueClient(GrpcTransport(serving.address, deadline_s=20.0), "actor")
  yield connected
  connected.close()


def test_matches_and_results_over_the_network(league, client):
  assignment, = client.matches(EXPLOITER, 1, 3)
  played = GamesReport(assignment, [PlayedGame(game, WIN, 0.) for game in range(3)])
  assert [each.counted for each in client.report_games([played])[0]] == [True] * 3
  assert [each.counted for each in client.report_games([played])[0]] == [False] * 3
  assert league.payoff.results(EXPLOITER, MAIN) == (3, 3, 0, 0)
  assert client.scores(MAIN, [EXPLOITER]) == [0]


def test_a_refusal_is_one_line_at_the_client(client):
  with pytest.raises(LeagueError, match="^The league in .* has no player 'nobody' among its 4.$"):
    client.matches("nobody")
  with pytest.raises(LeagueError, match=f"^Player {FIRST} is historical: it requests no matches"):
    client.matches(FIRST)


def test_the_example_of_the_docs_works(tmp_path):
  page = (pathlib.Path(__file__).parents[2] / "docs" / "league.md").read_text()
  example = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
  league = Coordinator(tmp_path / "league.sqlite", players.initial_players(["terran"]))
  started = server.Server(league)
  assert "127.0.0.1:7010" in example
  done = subprocess.run([sys.executable, "-c", example.replace("127.0.0.1:7010", started.address)],
                        capture_output=True, text=True, timeout=120)
  assert done.returncode == 0, done.stderr
  assert done.stdout == "True ('longest',)\n"  # the only main agent played itself
  started.stop()
  league.close()


def test_listens_on_localhost_and_refuses_a_taken_port(league, serving):
  assert serving.address == f"127.0.0.1:{serving.port}"
  with pytest.raises(server.AddressError, match=f"Cannot listen on 127.0.0.1:{serving.port}"):
    server.Server(league, serving.port)


def test_a_request_that_is_too_large_or_no_message_harms_nothing(league, serving, client):
  channel = grpc.insecure_channel(serving.address)
  call = channel.unary_unary(f"/{messages.SERVICE}/matches")
  with pytest.raises(grpc.RpcError) as error:
    call(b"x" * (messages.MAX_BYTES + 1), timeout=20)
  assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
  with pytest.raises(grpc.RpcError) as error:
    call(b"\x00\xff", timeout=20)
  assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
  channel.close()
  with socket.create_connection(("127.0.0.1", serving.port), timeout=20) as raw:
    raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
  assert client.orders() == [] and len(league.leases) == 0


def test_a_request_that_finds_the_disk_full_may_be_sent_again(league, serving, client):
  database = league.payoff.database
  pages = database.rows("PRAGMA page_count")[0][0]
  results = [GameResult(f"{i}" * 90, MAIN, EXPLOITER, WIN, 0.) for i in range(1000)]
  request = messages.encode(messages.ResultsRequest(results, {}))
  channel = grpc.insecure_channel(serving.address)  # sends nothing again
  database.rows(f"PRAGMA max_page_count = {pages}")
  with pytest.raises(grpc.RpcError, match="cannot be written: .*: no space left, ") as error:
    channel.unary_unary(f"/{messages.SERVICE}/report_many")(request, timeout=20)
  assert error.value.code() is grpc.StatusCode.UNAVAILABLE
  channel.close()
  database.rows(f"PRAGMA max_page_count = {pages + 1000}")
  client.report_many(results)
  assert league.payoff.results(MAIN, EXPLOITER) == (1000, 1000, 0, 0)


def test_a_client_waits_for_a_server_that_restarts(tmp_path):
  port = free_port()
  waiting = LeagueClient(GrpcTransport(f"127.0.0.1:{port}", deadline_s=60.0), "actor")
  assigned = []
  thread = threading.Thread(target=lambda: assigned.extend(waiting.matches(EXPLOITER, 2)))
  thread.start()
  for _ in range(2):
    league = Coordinator(tmp_path / "league.sqlite", players.initial_players(["zerg"]))
    started = server.Server(league, port)
    thread.join(60)
    assert waiting.renew(assigned) == [each.id for each in assigned] and len(assigned) == 2
    started.stop()
    league.close()
  waiting.close()


def test_run_flushes_and_ends_with_its_event(league, serving, client, monkeypatch):
  monkeypatch.setattr(server, "FLUSH_S", 0.01)
  stop = threading.Event()
  thread = threading.Thread(target=serving.run, args=(stop,))
  thread.start()
  assigned = client.matches(MAIN, 2)
  reader = open_league_file(league.payoff.path)
  deadline = time.monotonic() + 60
  while reader.assignments() != assigned and time.monotonic() < deadline:
    time.sleep(.01)
  assert reader.assignments() == assigned
  stop.set()
  thread.join(60)
  assert not thread.is_alive()


def test_a_clock_that_jumps_back_is_logged_in_one_line_and_nothing_is_lost(
    league, serving, client, monkeypatch, caplog):
  jumps, stop = [0.0, -3600.0], threading.Event()
  monkeypatch.setattr(server, "FLUSH_S", 0.01)
  def jump(_):
    if len(jumps) == 1:
      stop.set()
    return jumps.pop(0)
  monkeypatch.setattr(server.ClockWatch, "jump", jump)
  monkeypatch.setattr(logging.get_absl_logger(), "propagate", True)
  assigned = client.matches(MAIN, 2)
  with caplog.at_level("WARNING"):
    serving.run(stop)
  found = [record.getMessage() for record in caplog.records if "clock_jump" in record.getMessage()]
  assert len(found) == 1 and "\n" not in found[0]
  assert "clock_jump seconds=-3600.0 leases=unaffected" in found[0]
  assert league.leases.assignments() == assigned


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_jump_of_the_systems_time_is_measured_once(jump):
  seconds = {"system": 1e9, "monotonic": 5.0}
  watch = server.ClockWatch(lambda: seconds["system"], lambda: seconds["monotonic"])
  assert watch.jump() == 0
  seconds["system"] += 10 + jump
  seconds["monotonic"] += 10
  assert watch.jump() == pytest.approx(jump)
  assert watch.jump() == 0


def test_requests_in_progress_have_a_bound_of_bytes(league, monkeypatch):
  """While one request is answered, another that exceeds the bound is refused, then accepted."""
  monkeypatch.setattr(server, "MOST_BYTES", 100)
  entered, leave = threading.Event(), threading.Event()
  def call(_, method, message):
    entered.set()
    assert leave.wait(60)
    return b"[]"
  monkeypatch.setattr(server.Service, "call", call)
  started = server.Server(league)
  channel = grpc.insecure_channel(started.address)
  orders = channel.unary_unary(f"/{messages.SERVICE}/orders")
  first = orders.future(b"x" * 60, timeout=60)
  assert entered.wait(60)
  with pytest.raises(grpc.RpcError, match="too many bytes, expected at most 100") as error:
    orders(b"x" * 60, timeout=60)
  assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
  second = orders.future(b"x" * 40, timeout=60)
  leave.set()
  assert first.result() == second.result() == b"[]"
  assert orders(b"x" * 100, timeout=60) == b"[]"
  channel.close()
  started.stop()


class Served:
  """The launch file in a process of its own."""

  def __init__(self, path, port):
    self._argv = [sys.executable, "-m", "starleague.experiments.coordinator",
                  f"--league_file={path}",
                  "--composition=zerg:3:0:0", f"--port={port}", "--snapshot_steps=1000",
                  "--timeout_steps=2000"]

  def start(self):
    self.process = subprocess.Popen(self._argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    text=True)
    assert re.match("coordinator at", self.process.stdout.readline())

  def end(self, number):
    self.process.send_signal(number)
    status = self.process.wait(60)
    self.process.stdout.close()
    return status


def outcome(result_id):
  """Returns the result of a game, which depends on its id alone."""
  return random.Random(result_id).choice((-1, 0, 1))


def actor(port, log, index, stop, started):
  """Plays until `stop` exists; writes each id that was acknowledged, and each assignment."""
  client = LeagueClient(GrpcTransport(f"127.0.0.1:{port}", deadline_s=120.0), f"actor-{index}")
  home, steps = f"zerg-main-{index}", 0
  with open(log, "w") as file:
    def write(**line):
      file.write(json.dumps(line) + "\n")
    started.set()
    while not pathlib.Path(stop).exists():
      for assignment in client.matches(home, 2, 4):
        write(assigned=assignment)
        for games in ((0, 1), (1, 2, 3)):  # game 1 is reported twice
          report = GamesReport(assignment, [
            PlayedGame(game, outcome(assignment.result_id(game)), 0.) for game in games])
          receipts, = client.report_games([report])
          write(acknowledged=[assignment.result_id(game) for game in games],
                counted=sum(receipt.counted for receipt in receipts))
      steps += 400
      client.set_steps(home, steps)
      write(steps=steps)
      for order in client.orders(home):
        write(snapshot=client.complete(order.id).name)
  client.close()


def kill_under_load(path, port, logs, stop):
  """Runs actors and kills the server `KILLS` times; returns the lines of the actors' logs."""
  served = Served(path, port)
  served.start()
  actors = start_together(actor, [(port, log, i, stop) for i, log in enumerate(logs)])
  rng = random.Random(0)
  for _ in range(KILLS):
    time.sleep(rng.uniform(.05, .4))
    assert served.end(signal.SIGKILL) == -signal.SIGKILL
    served.start()
  pathlib.Path(stop).touch()
  for process in actors:
    process.join(120)
    assert process.exitcode == 0
  start = time.monotonic()
  assert served.end(signal.SIGTERM) == 0
  assert time.monotonic() - start < 20
  return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


@pytest.mark.slow
def test_twenty_kills_under_load_lose_nothing_acknowledged_and_count_nothing_twice(tmp_path):
  path, port = tmp_path / "league.sqlite", free_port()
  lines = kill_under_load(path, port, [tmp_path / f"{i}.log" for i in range(CLIENTS)],
                          str(tmp_path / "stop"))
  acknowledged = {name for line in lines for name in line.get("acknowledged", ())}
  assigned = [tuple(line["assigned"]) for line in lines if "assigned" in line]
  assert len(set(assigned)) == len({each[0] for each in assigned}) == len(assigned)  # no id twice
  file, database = open_league_file(path), Database(path, "payoff", 2, read_only=True)
  stored = {row[0]: row[1:] for row in database.rows("SELECT id, home, away, result FROM results")}
  assert acknowledged and acknowledged == set(stored)  # each report was answered in the end
  pairs = {each[0]: each[1:3] for each in assigned}
  assert all(stored[name] == (*pairs[name.split("/")[0]], outcome(name)) for name in acknowledged)
  # Each result changed the counts of its pair once, and those of its branch.
  numbers = collections.Counter(frozenset(row[:2]) for row in stored.values() if row[0] != row[1])
  for first, second, games in database.rows("SELECT first, second, games FROM pairs"):
    assert games == pytest.approx((1 - .99 ** numbers.pop(frozenset((first, second)))) / .01)
  assert not numbers
  assert sum(each.games for each in file.branches()) == len(stored)
  assert [each for each in file.assignments() if file.games_played(each) < each.games] == []
  steps = max(line["steps"] for line in lines if "steps" in line)
  assert max(each.steps for each in file.progress().values()) >= steps
  snapshots = [line["snapshot"] for line in lines if "snapshot" in line]
  assert len(snapshots) == len(set(snapshots)) > 0
  assert {each.name for each in file.players()} >= set(snapshots)
  print(f"{KILLS} kills, {len(acknowledged)} results acknowledged: 0 lost, 0 counted twice")
