"""Compares the conversion of StarCraft II's observations with pysc2's.

  python benchmarks/sc2.py --observation obs.pb.xz --map_size 184,184

The observation is a serialised ResponseObservation; units of the player are repeated until it has
--units. Both make raw units and the 7 minimap planes of the agent; this project makes the complete
observation of the agent besides. Runs alternate, so that load on the machine affects both alike.
Times are CPU times; the ratio is the median of the pairs' ratios.
"""

import lzma
import os
import pathlib
import statistics
import time
from collections.abc import Callable

from absl import app, flags

from starleague.agent import config, types
from starleague.environments.sc2.converter import memory as memories
from starleague.environments.sc2.converter import observations, planes
from starleague.environments.sc2.converter.setting import make_setting
from starleague.environments.sc2.protocol import sc_pb

_OBSERVATION = flags.DEFINE_string("observation", None, "File of a ResponseObservation, or .xz.",
                                   required=True)
_MAP_SIZE = flags.DEFINE_list("map_size", ["184", "184"], "Width and height in game units.")
_UNITS = flags.DEFINE_integer("units", 512, "Units in the observation.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 30, "Measured rounds.", lower_bound=3)
_RUNS = flags.DEFINE_integer("runs", 10, "Runs of each in a round.", lower_bound=1)


def read_observation(path: pathlib.Path, units: int) -> sc_pb.ResponseObservation:
  """Reads an observation and repeats the player's units until it has as many as wanted."""
  data = path.read_bytes()
  response = sc_pb.ResponseObservation.FromString(
    lzma.decompress(data) if path.suffix == ".xz" else data)
  found = response.observation.raw_data.units
  own = [unit for unit in found if unit.alliance == types.ALLIANCE_SELF]
  while own and len(found) < units:
    unit = found.add()
    unit.CopyFrom(own[len(found) % len(own)])
    unit.tag = len(found) << 18
  return response


def make_ours(response: sc_pb.ResponseObservation, width: int, height: int) -> Callable:
  """Returns a function that makes the agent's observation."""
  info = sc_pb.ResponseGameInfo()
  info.start_raw.map_size.x, info.start_raw.map_size.y = width, height
  setting = make_setting(config.full(), info, 1)
  parsed = observations.read(response)
  memory = memories.watch(memories.initial(setting), response, parsed.units, setting)

  def convert():
    parsed = observations.read(response)
    return observations.convert(
      parsed, None, setting, memories.watch(memory, response, parsed.units, setting))

  return convert


def make_pysc2s(response: sc_pb.ResponseObservation, width: int, height: int) -> Callable:
  """Returns a function that makes pysc2's raw units and planes."""
  from pysc2.lib import features, point
  interface = features.AgentInterfaceFormat(
    use_raw_units=True, use_raw_actions=True, raw_resolution=types.POSITION_GRID,
    add_cargo_to_units=True)
  converter = features.Features(interface, map_size=point.Point(width, height))
  layers = [getattr(features.MINIMAP_FEATURES, planes.PROTOCOL_NAMES.get(name, name))
            for name in types.MINIMAP_PLANES]

  def convert():
    converter.transform_obs(response)
    return [layer.unpack(response.observation) for layer in layers]

  return convert


def cpu_ms(run: Callable, runs: int) -> float:
  """CPU time of a run, mean of several."""
  start = time.process_time()
  for _ in range(runs):
    run()
  return 1e3 * (time.process_time() - start) / runs


def main(_: list[str]) -> None:
  width, height = map(int, _MAP_SIZE.value)
  response = read_observation(pathlib.Path(_OBSERVATION.value), _UNITS.value)
  ours, theirs = make_ours(response, width, height), make_pysc2s(response, width, height)
  runs = _RUNS.value
  pairs = [(cpu_ms(ours, runs), cpu_ms(theirs, runs)) for _ in range(_ROUNDS.value + 1)][1:]
  print(f"{len(response.observation.raw_data.units)} units, {len(pairs)} rounds of {runs} runs of "
        f"each, load {os.getloadavg()[0]:.1f}; CPU times of a run")
  for name, times in zip(("starleague", "pysc2"), zip(*pairs, strict=True), strict=True):
    print(f"  {name:10}  median {statistics.median(times):6.2f} ms, best round {min(times):.2f} ms")
  print(f"  ratio       median {statistics.median(b / a for a, b in pairs):6.2f}")


if __name__ == "__main__":
  app.run(main)
