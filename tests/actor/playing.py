"""Main functions of game processes that behave and misbehave; they import no JAX."""

import json
import os
import time


def obedient(connection, *arguments):
  """Reports the seed as loops; seeds 1 and 2 die and stall the first time, 3 is void."""
  folder = arguments[0]
  while True:
    try:
      request = json.loads(connection.recv_bytes())
    except EOFError:
      return
    seed = request["seed"]
    if seed in (1, 2):
      mark = os.path.join(folder, str(seed))
      if not os.path.exists(mark):
        open(mark, "w").close()
        if seed == 1:
          os._exit(7)
        time.sleep(600)
    report = {"result": None, "reason": "it hangs"} if seed == 3 else {
      "result": seed % 3 - 1, "loops": seed}
    connection.send_bytes(json.dumps(report).encode())


def hopeless(connection, *arguments):
  """Cannot play at all."""
  connection.recv_bytes()
  connection.send_bytes(json.dumps({
    "result": None, "reason": "StarCraft II is not installed", "final": True}).encode())
  time.sleep(600)


def dying(connection, *arguments):
  """Dies at once."""
  os._exit(3)
