"""Decoders that misbehave, for the names of files that say so."""

import os
import pathlib
import time

from starleague.data.replays.decode import decode


def misbehaving(data, file):
  """Hangs, grows, dies or answers at length where the file's name says so; counts its calls."""
  path = pathlib.Path(file)
  with open(path.parent / "calls.txt", "a") as calls:
    calls.write(path.name + "\n")
  if "hang" in path.name:
    time.sleep(600)
  if "grow" in path.name:
    return [bytes(16 << 20) for _ in range(10_000)]
  if "die" in path.name:
    os._exit(3)
  decoded = decode(data, file)
  if "long" in path.name:  # 40 bytes for each loop, 40 MB
    return decoded._replace(players=[
      decoded.players[0]._replace(action_loops=["x" * 36] * 1_000_000)])
  return decoded
