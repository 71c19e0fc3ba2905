"""Small programs on a local Ray cluster of two nodes: places, deaths, moves, gangs."""

import os
import signal
import socket
import sys
import time

import pytest

from starleague import league
from starleague.experiments.run.processes import cluster, graph, process_runner
from starleague.experiments.run.processes.programs import Address, Placeholder, Process
from starleague.league import players
from tests.experiments.ray_nodes import start_cluster

HOLD_S = 120
SLEEP = """
import os, sys, time
print(os.environ["NODE"], os.getppid(), *sys.argv[1:], flush=True)
time.sleep(60)
"""
# A node with the two hosts of a TPU slice.
FAR = {
  "num_cpus": 2, "resources": {"far": 4, "TPU-v4-16-head": 1, "slice-a": 1, "TPU": 8},
  "env_vars": {"NODE": "far", "TPU_NAME": "slice-a", "TPU_ACCELERATOR_TYPE": "v4-16",
               "TPU_TOPOLOGY": "2x2x2"}}


@pytest.fixture(scope="module")
def nodes():
  """A cluster of two nodes on this machine: `head`, and `far` with the hosts of a TPU slice."""
  made = start_cluster(
    {"num_cpus": 2, "resources": {"head": 4}, "env_vars": {"NODE": "head"},
     "include_dashboard": False}, FAR)
  try:
    yield made
  finally:
    made.shutdown()


@pytest.fixture
def place(nodes, monkeypatch):
  monkeypatch.setenv("RAY_ADDRESS", nodes.address)
  with cluster.connect("auto", "test") as connected:
    yield connected


@pytest.fixture
def make(tmp_path):
  """Makes processes that say where they are, and sleep."""
  def make_process(name, needs, *words, code=SLEEP, **changes):
    script = tmp_path / "program.py"
    script.write_text(code)
    return Process(name, (Placeholder.PYTHON, "-u", str(script), *words), {},
                   tmp_path / f"{name}.log", restarts=5, needs=needs, **changes)

  return make_process


def lines(process):
  """The lines of a process's log, as words: its node, its seat's process id, its arguments."""
  path = process.log_path
  text = path.read_text() if path.exists() else ""
  # Python -u writes a line word by word: the last one counts when it has ended.
  return [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]


def poll_until(runner, condition):
  end = time.monotonic() + HOLD_S
  while not (found := condition()):
    assert time.monotonic() < end, f"not within {HOLD_S} s: {runner.states()}"
    runner.poll()
    time.sleep(0.05)
  return found


@pytest.mark.slow
def test_programs_run_where_their_resources_are_and_are_restarted(place, make):
  server = make("server", {"head": 1}, Placeholder.ADDRESS, listens=True)
  client = make("client", {"far": 1}, Address("server"))
  with process_runner.Runner([server, client], place=place, backoff_seconds=0.05) as runner:
    (where, seat, address), = poll_until(runner, lambda: lines(server) and lines(client))
    host, port = address.rsplit(":", 1)
    assert where == "far" and lines(server)[0][0] == "head" and host != "127.0.0.1"
    assert lines(server)[0][2] == address == runner.addresses()["server"]
    os.kill(int(seat), signal.SIGKILL)  # the seat, and with it the program
    poll_until(runner, lambda: len(lines(client)) == 2)
    os.kill(int(lines(server)[0][1]), signal.SIGKILL)
    poll_until(runner, lambda: len(lines(server)) == 2)
    assert lines(server)[1][2] == address  # it came back at its address: its client stayed
    assert runner.restarts() == {"server": 1, "client": 1} and port
  assert runner.states() == dict.fromkeys(["server", "client"], process_runner.State.STOPPED)


@pytest.mark.slow
def test_a_program_that_fails_tells_its_status_and_log(place, make):
  broken = make("broken", {"CPU": 1}, code="print('no map'); raise SystemExit(3)")
  with process_runner.Runner([broken._replace(restarts=0)], place=place) as runner:
    with pytest.raises(process_runner.ProcessFailed, match=r"exited with status 3; (.|\n)*no map"):
      runner.wait(["broken"], HOLD_S)


@pytest.mark.slow
def test_a_gang_is_placed_on_one_slice(place, make):
  needs = {"TPU": 4, "TPU-v4-16-head": 1}
  gang = [make("first", needs, Placeholder.ADDRESS, gang="learner", listens=True),
          make("second", needs, Address("first"), gang="learner")]
  with process_runner.Runner(gang, place=place, backoff_seconds=0.05) as runner:
    poll_until(runner, lambda: all(map(lines, gang)))
    assert [lines(each)[0][0] for each in gang] == ["far", "far"]
    os.kill(int(lines(gang[1])[0][1]), signal.SIGKILL)
    poll_until(runner, lambda: all(len(lines(each)) == 2 for each in gang))
    assert runner.restarts() == {"first": 1, "second": 1}


@pytest.mark.slow
def test_missing_resources_are_told_in_one_line(place, make):
  for needs, message in (
      ({"TPU": 16}, "process 'one' needs TPU:16: no node of the cluster has it"),
      ({"head": 3}, "process 'two' needs head:3 beside head:3 of those before it; the cluster has "
                    "head:4")):
    with pytest.raises(cluster.ClusterError) as caught:
      process_runner.Runner([make("one", needs), make("two", needs)], place=place).start()
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_coordinator_answers_by_its_name(place, make, tmp_path):
  coordinator = Process(
    graph.COORDINATOR, graph.module(
      "coordinator", "--league_file", str(tmp_path / "league.sqlite"), "--composition",
      "terran:1:1:0", "--listen", Placeholder.HOST, "--port", Placeholder.PORT), {},
    tmp_path / "coordinator.log", restarts=2, listens=True)
  with process_runner.Runner([coordinator], place=place, backoff_seconds=0.05) as runner:
    client = league.LeagueClient(cluster.RayTransport("test"))
    assert [player.name for player in client.players()] == [
      player.name for player in players.initial_players(["terran"], 1, 1, 0)]
    with pytest.raises(league.LeagueError, match="nobody"):
      client.set_steps("nobody", 1)
    client.set_steps("terran-main-0", 5)
    runner._children[0].program._ray.kill(runner._children[0].program._seat)
    poll_until(runner, lambda: runner.restarts() == {"coordinator": 1})
    assert client.progress("terran-main-0").steps == 5


@pytest.mark.slow
def test_a_lost_node_moves_its_programs(nodes, place, make):
  second = nodes.add_node(**FAR)
  server = make("server", {"far": 4}, Placeholder.ADDRESS, listens=True)
  client = make("client", {"head": 1}, Address("server"))
  with process_runner.Runner([server, client], place=place, backoff_seconds=0.05) as runner:
    poll_until(runner, lambda: lines(client))
    lost = runner._children[0].program.where().node
    nodes.remove_node(next(node for node in (second, *nodes.list_all_nodes())
                           if node.node_id == lost), allow_graceful=False)
    poll_until(runner, lambda: len(lines(server)) == 2)
    where = poll_until(runner, lambda: runner._children[0].program.where())
    assert where.node != lost
    address = runner.addresses()["server"]
    poll_until(runner, lambda: lines(client)[-1][2] == address)


@pytest.mark.parametrize("address", ["auto", "ray://127.0.0.1:{port}"])
def test_a_cluster_that_is_not_there(address, monkeypatch):
  pytest.importorskip("ray")
  with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
  monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
  with pytest.raises(cluster.ClusterError, match=f"reachable at '.*127.0.0.1:{port}'.*refused"):
    with cluster.connect(address.format(port=port), "test"):
      pass


def test_without_ray(monkeypatch):
  monkeypatch.setitem(sys.modules, "ray", None)
  with pytest.raises(cluster.ClusterError, match=r"pip install 'starleague\[launch\]'"):
    with cluster.connect("auto", "test"):
      pass


