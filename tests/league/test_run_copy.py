"""Copies of a run's files on nodes that do not share its directory, over messages."""

import pytest

from starleague.common import files
from starleague.league import players, run_copy, shared_files
from starleague.league.client import GrpcTransport, LeagueClient
from starleague.league.coordinator import Coordinator
from starleague.league.players import LeagueError
from starleague.league.run_copy import RunCopy
from starleague.league.server import Server
from starleague.league.service import Service
from tests.league.test_shared_files import WEIGHTS, contents, save


class Network:
  """A transport to a service that counts calls, and fails or changes one where it is told to."""

  def __init__(self, service):
    self.service, self.calls = service, []
    self.fails_at = None  # number of the call

  def call(self, method, message):
    self.calls.append(method)
    if self.fails_at == len(self.calls):
      raise ConnectionError("killed")
    return self.service.call(method, message)


@pytest.fixture
def head(tmp_path):
  return tmp_path / "head"


@pytest.fixture
def league(head):
  opened = Coordinator(head / "league.sqlite", players.initial_players(["zerg"]))
  yield opened
  opened.close()


@pytest.fixture
def network(league):
  return Network(Service(league))


@pytest.fixture
def node(tmp_path, network, monkeypatch):
  for module in (shared_files, run_copy):
    monkeypatch.setattr(module, "PIECE_BYTES", 300)
  return RunCopy(tmp_path / "node", LeagueClient(network, "actor"))


def test_a_snapshot_is_copied_once_to_a_node_without_the_directory(head, node, network):
  save(head / "players" / "main-0001")
  assert node.snapshot("main-0001") == node.run_dir / "players" / "main-0001"
  assert contents(node.run_dir / "players" / "main-0001") == WEIGHTS
  assert network.calls.count("read_file") == 5  # 2 bytes and 1,024 bytes, 300 at a time
  node.snapshot("main-0001")
  assert network.calls.count("read_file") == 5
  assert not any(path.name.startswith(files.PARTIAL) for path in node.run_dir.rglob("*"))


def test_a_node_that_shares_the_directory_copies_nothing(head, network):
  save(head / "players" / "main-0001")
  shared = RunCopy(head, LeagueClient(network, "actor"))
  assert shared.snapshot("main-0001") == head / "players" / "main-0001"
  shared.send("players/main-0001")
  assert network.calls == ["list_files", "offer_files"]


def test_a_first_snapshot_is_that_of_the_initial_parameters_unless_it_has_its_own(head, node):
  save(head / "initial", {"manifest.json": b"initial"})
  assert node.snapshot("main-0000") == node.run_dir / "initial"
  assert contents(node.run_dir / "initial") == {"manifest.json": b"initial"}
  save(head / "players" / "main-0000", {"manifest.json": b"frozen"})
  assert node.snapshot("main-0000") == node.run_dir / "players" / "main-0000"
  assert node.snapshot("rival-0000") == node.run_dir / "initial"


def test_files_of_an_earlier_run_of_the_name_are_replaced(head, node):
  save(node.run_dir / "players" / "main-0001", {"manifest.json": b"old", "more": b"old"})
  save(head / "players" / "main-0001")
  assert node.fetch("players/main-0001")
  assert contents(node.run_dir / "players" / "main-0001") == WEIGHTS
  (head / "config.json").write_text("1")
  assert node.fetch("config.json") and (node.run_dir / "config.json").read_text() == "1"
  (head / "config.json").write_text("2")
  assert node.fetch("config.json") and (node.run_dir / "config.json").read_text() == "2"
  save(node.run_dir / "players" / "main-0002")
  assert not node.fetch("players/main-0002")  # the run has none, whatever lies here


@pytest.mark.parametrize("at", range(2, 7))
def test_a_copy_continues_after_a_kill(at, head, node, network):
  save(head / "players" / "main-0001")
  network.fails_at = at
  with pytest.raises(ConnectionError):
    node.fetch("players/main-0001")
  assert not (node.run_dir / "players" / "main-0001").exists()
  assert node.fetch("players/main-0001")
  assert contents(node.run_dir / "players" / "main-0001") == WEIGHTS
  assert network.calls.count("read_file") == 5 + 1  # the one that failed


@pytest.mark.parametrize("at", range(1, 8))
def test_sending_continues_after_a_kill(at, head, node, network):
  save(node.run_dir / "players" / "main-0001")
  network.fails_at = at
  with pytest.raises(ConnectionError):
    node.send("players/main-0001")
  network.service = Service(network.service._coordinator)  # the coordinator was restarted too
  node.send("players/main-0001")
  assert contents(head / "players" / "main-0001") == WEIGHTS
  assert network.calls.count("write_file") == 5 + (network.calls[at - 1] == "write_file")


def test_a_damaged_piece_is_copied_again(head, node, network, monkeypatch):
  save(head / "players" / "main-0001")
  read = shared_files.SharedFiles.read_file
  damaged = []

  def read_once_damaged(self, name, path, offset):
    piece = read(self, name, path, offset)
    if path != "manifest.json" and len(damaged) < 1:
      damaged.append(path)
      return bytes(len(piece))
    return piece

  monkeypatch.setattr(shared_files.SharedFiles, "read_file", read_once_damaged)
  assert node.fetch("players/main-0001")
  assert contents(node.run_dir / "players" / "main-0001") == WEIGHTS
  assert network.calls.count("read_file") == 5 + 4


@pytest.mark.parametrize("piece", [b"", b"x" * 300])
def test_files_that_never_arrive_sound_are_an_error(piece, head, node, monkeypatch):
  save(head / "players" / "main-0001")
  monkeypatch.setattr(shared_files.SharedFiles, "read_file", lambda self, name, path, offset: piece)
  with pytest.raises(LeagueError, match="players/main-0001 does not arrive in .* with the SHA-256 "
                                        "of its files, after 3 attempts: check the disks"):
    node.fetch("players/main-0001")
  assert not (node.run_dir / "players" / "main-0001").exists()


def test_without_a_coordinator_there_is_what_is_here(tmp_path):
  save(tmp_path / "initial")
  alone = RunCopy(tmp_path)
  assert alone.snapshot("main-0000") == tmp_path / "initial"
  assert alone.fetch("initial") and not alone.fetch("players/main-0001")
  alone.send("initial")


def test_large_files_cross_the_network_in_pieces(head, league, tmp_path):
  """A message has a bound of 16 MiB; these parameters have 40 MB."""
  serving = Server(league)
  weights = {"manifest.json": b"{}", "params/data": bytes(range(250)) * 160_000}
  try:
    learner = RunCopy(tmp_path / "learner", LeagueClient(GrpcTransport(serving.address), "learner"))
    save(learner.run_dir / "players" / "main-0001", weights)
    learner.send("players/main-0001")
    actor = RunCopy(tmp_path / "actor", LeagueClient(GrpcTransport(serving.address), "actor"))
    assert contents(actor.snapshot("main-0001")) == weights
    assert contents(head / "players" / "main-0001") == weights
  finally:
    for each in (learner, actor):
      each.client.close()
    serving.stop()
