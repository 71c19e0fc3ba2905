"""Decoders that misbehave, for the names of files that say so."""

import os
import pathlib
import time

from starleague.data.replays.decode import decode


def misbehaving(data, file):
  """Hangs, grows, dies or fails where the file's name says so; counts its calls in a file."""
  path = pathlib.Path(file)
  with open(path.parent / "calls.txt", "a") as calls:
    calls.write(path.name + "\n")
  if "hang" in path.name:
    time.sleep(600)
  if "grow" in path.name:
    return [bytes(16 << 20) for _ in range(10_000)]
  if "die" in path.name:
    os._exit(3)
  return decode(data, file)
