"""Start of the StarCraft II API server, and game loops per second of a bot that does nothing.

  python -m benchmarks.sc2_server --rounds 3 --cold 1

Each round starts a server process, and plays against a scripted player with the requests of a
python-sc2 bot whose `on_step` is empty: observation, game_info and step, 8 game loops at a time.
Times count from the process's start. CPU times are those of the server process, all threads.
Rounds without kept programs use an empty folder; the others use the user's, and one start before
them fills it. Run from the repository's root, with the extra `sc2`.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import portpicker
from websockets.exceptions import WebSocketException
from websockets.sync import client

from starleague.environments.sc2.protocol import sc_pb

_CACHE = "STARLEAGUE_SERVER_CACHE"
_STEP = 8  # game loops, python-sc2's `game_step`
_DEADLINE_S = 600.0  # of a request: the first step may compile
_TICK = os.sysconf("SC_CLK_TCK")


class Server(contextlib.ExitStack):
  """A server process and its client, both closed at the end of the context."""

  def __init__(self, cache: str | None):
    """Starts the process and connects.

    Args:
      cache: folder of kept programs; None: the user's.

    Raises:
      TimeoutError: it does not listen in time.
    """
    super().__init__()
    port = portpicker.pick_unused_port()
    self.begun = time.perf_counter()
    self._process = subprocess.Popen(
      [sys.executable, "-m", "starleague.environments.sc2.server", "-port", str(port)],
      env=os.environ | ({} if cache is None else {_CACHE: cache}))
    self.callback(self._end)
    try:
      self._websocket = self._connect(port)
    except BaseException:
      self.close()
      raise

  def _connect(self, port: int) -> Any:
    while time.perf_counter() - self.begun < _DEADLINE_S:
      try:
        return self.enter_context(client.connect(
          f"ws://127.0.0.1:{port}/sc2api", max_size=None, compression=None))
      except (OSError, WebSocketException):
        time.sleep(0.05)
    raise TimeoutError(f"the server does not listen within {_DEADLINE_S:.0f} s")

  def ask(self, **request: Any) -> sc_pb.Response:
    """Returns the response to a request.

    Raises:
      RuntimeError: the response is an error.
    """
    self._websocket.send(sc_pb.Request(**request).SerializeToString())
    response = sc_pb.Response.FromString(self._websocket.recv(timeout=_DEADLINE_S, decode=False))
    if response.error:
      raise RuntimeError(f"{[*request]}: {response.error[0]}")
    return response

  def spent(self) -> tuple[float, float]:
    """Returns seconds of CPU and of time since the start."""
    with open(f"/proc/{self._process.pid}/stat", encoding="utf-8") as file:
      fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK, time.perf_counter() - self.begun

  def _end(self) -> None:
    self._process.terminate()
    self._process.wait(30)


def play(server: Server, map_name: str, loops: int) -> dict[str, float]:
  """Plays a game; returns its figures by name."""
  server.ask(create_game=sc_pb.RequestCreateGame(
    local_map=sc_pb.LocalMap(map_path=map_name), random_seed=2, player_setup=[
      sc_pb.PlayerSetup(type=sc_pb.Participant),
      sc_pb.PlayerSetup(type=sc_pb.Computer, race=1, difficulty=sc_pb.Medium)]))
  server.ask(join_game=sc_pb.RequestJoinGame(
    race=1, options=sc_pb.InterfaceOptions(raw=True, score=True)))
  server.ask(data=sc_pb.RequestData(ability_id=True, unit_type_id=True, upgrade_id=True))
  server.ask(game_info=sc_pb.RequestGameInfo())
  server.ask(observation=sc_pb.RequestObservation())
  observed = server.spent()
  server.ask(step=sc_pb.RequestStep(count=_STEP))
  before = server.spent()
  for _ in range(loops // _STEP):
    server.ask(observation=sc_pb.RequestObservation())
    server.ask(game_info=sc_pb.RequestGameInfo())
    server.ask(step=sc_pb.RequestStep(count=_STEP))
  cpu, wall = (late - early for late, early in zip(server.spent(), before, strict=True))
  played = loops // _STEP * _STEP
  return {"observation_cpu_s": observed[0], "observation_s": observed[1],
          "step_cpu_s": before[0], "step_s": before[1],
          # CPU time has a resolution of a tick: a short play may have taken none.
          "loops_per_cpu_s": played / max(cpu, 1 / _TICK), "loops_per_s": played / wall}


def measure(map_name: str, loops: int, cache: str | None) -> dict[str, float]:
  """Returns the figures of one round."""
  with Server(cache) as server:
    return play(server, map_name, loops)


def main() -> None:
  """Prints each round's figures, and the medians of the rounds with kept programs."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--map", default="AcropolisLE", help="name of a map")
  parser.add_argument("--loops", type=int, default=1600, help="game loops of a round")
  parser.add_argument("--rounds", type=int, default=3, help="rounds with kept programs")
  parser.add_argument("--cold", type=int, default=0, help="rounds without kept programs")
  flags = parser.parse_args()
  for _ in range(flags.cold):
    with tempfile.TemporaryDirectory() as folder:
      show("cold", measure(flags.map, flags.loops, folder))
  if flags.rounds:
    measure(flags.map, _STEP, None)
  found = []
  for _ in range(flags.rounds):
    found.append(measure(flags.map, flags.loops, None))
    show("kept", found[-1])
  if found:
    show("median", {name: statistics.median(one[name] for one in found) for name in found[0]})


def show(name: str, figures: dict[str, float]) -> None:
  """Prints one line of figures."""
  print(name, *(f"{key}={value:.1f}" for key, value in figures.items()), flush=True)


if __name__ == "__main__":
  main()
