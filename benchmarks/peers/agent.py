"""The PyTorch peer of benchmarks/agent.py: a child process, measured in turn with JAX."""

import dataclasses
import json
import pathlib
import subprocess
import time
from collections.abc import Callable

import jax
import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.agent.config import AgentConfig
from starleague.agent.encoders import fields, projection

ROUNDS = ("acting", "forward", "forward and backward")


def _sizes(config: AgentConfig) -> dict:
  """Inputs of the network, counted from the code of the agent.

  Two parts of the value functions' inputs are left out, which favours the peer: their own encoder
  of build orders, and the choice of statistics by value function.
  """
  s = config.scalar
  parts = ((v.NUM_UNIT_TYPES, s.cumulative), (v.NUM_EFFECTS, s.cumulative),
           (v.NUM_UPGRADES, s.cumulative))
  context = [(len(types.RACES), s.home_race), (len(types.RACES), s.away_race),
             (v.NUM_FUNCTIONS, s.available_actions), *parts]
  others = [(len(types.PLAYER_COLUMNS), s.player), (v.NUM_UPGRADES, s.upgrades),
            (v.NUM_UPGRADES, s.enemy_upgrades), (s.time, s.time), (v.NUM_UNIT_TYPES, s.unit_counts),
            (7, s.mmr), (types.NUM_DELAYS, s.last_delay), (v.NUM_FUNCTIONS, s.last_function),
            (5, s.last_queued_repeat)]
  values = 2 * [(len(types.PLAYER_COLUMNS), s.player), (v.NUM_UNIT_TYPES, s.unit_counts),
                (v.NUM_UPGRADES, s.upgrades), (len(types.SCORE_COLUMNS), s.score)] + 4 * [*parts]
  width = s.build_order_attention_heads * s.build_order_key_size
  build_order = types.BUILD_ORDER_LENGTH * width
  scalars = sum(size for _, size in (*context, *others))
  return {
    "entity_classes": fields.NUM_CLASSES, "entity_fields": len(fields.FIELDS),
    "entity_numbers": fields.NUM_NUMBERS, "map_channels": projection.NUM_CHANNELS,
    "coarse_size": config.coarse_size, "functions": v.NUM_FUNCTIONS,
    "unit_types": v.NUM_UNIT_TYPES, "scalars": context + others, "context_scalars": len(context),
    "build_order_inputs": v.NUM_UNIT_TYPES + types.BUILD_ORDER_LENGTH + 2 * fields.POSITION_BITS,
    "context": build_order + sum(size for _, size in context), "value_scalars": values,
    "core_input": config.entity_size + config.spatial_size + build_order + scalars}


class Peer:
  """The PyTorch agent in a process of its own."""

  def __init__(self, python: str, config: AgentConfig, length: int, sequences: int,
               compiled: bool):
    """Starts the agent, eager or also compiled, and waits until it has run each round once."""
    self.kinds = ("eager", "compiled") if compiled else ("eager",)
    script = pathlib.Path(__file__).with_name("torch_agent.py")
    self._process = subprocess.Popen(
      [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    self._write({"config": dataclasses.asdict(config), "sizes": _sizes(config), "length": length,
                 "sequences": sequences, "kinds": self.kinds})
    self.parameters = int(self._read())

  def _write(self, line) -> None:
    assert self._process.stdin is not None
    print(line if isinstance(line, str) else json.dumps(line), file=self._process.stdin, flush=True)

  def _read(self) -> float:
    assert self._process.stdout is not None
    line = self._process.stdout.readline()
    if not line:
      raise RuntimeError(f"the PyTorch agent ended with code {self._process.wait()}; its error is "
                         "above")
    return float(line)

  def seconds(self, name: str, kind: str) -> float:
    """CPU seconds of one round."""
    self._write(f"{kind} {name}")
    return self._read()

  def close(self) -> None:
    """Ends the process."""
    self._process.communicate()


def compare(peer: Peer, name: str, run: Callable, rounds: int, accessed: float) -> None:
  """Runs both in turn; prints the ratios of their median CPU seconds.

  In each turn the second of two calls counts, as in training, where calls follow one another. The
  first one after a pause also pays for memory that a virtual machine has returned to its host.

  Args:
    peer: the PyTorch agent.
    name: of the round.
    run: the JAX program.
    rounds: number of turns.
    accessed: bytes that the JAX program reads and writes, by XLA's cost analysis.
  """
  def ours_once() -> float:
    begin = time.process_time()
    jax.block_until_ready(run())
    return time.process_time() - begin

  ours: list[float] = []
  theirs: dict[str, list[float]] = {kind: [] for kind in peer.kinds}
  for _ in range(rounds):
    ours.append([ours_once() for _ in range(2)][-1])
    for kind, found in theirs.items():
      found.append([peer.seconds(name, kind) for _ in range(2)][-1])
  line = (f"{name}: {np.median(ours):.3f} CPU-seconds, {accessed / 1e9:.2f} GB accessed, "
          f"{accessed / np.median(ours) / 1e9:.1f} GB a CPU-second")
  for kind, found in theirs.items():
    each = sorted(b / a for a, b in zip(ours, found, strict=True))
    line += (f"; PyTorch {kind} {np.median(found):.3f}: ratio "
             f"{np.median(found) / np.median(ours):.2f} ({each[0]:.2f} to {each[-1]:.2f})")
  print(f"{line}, {rounds} rounds", flush=True)
