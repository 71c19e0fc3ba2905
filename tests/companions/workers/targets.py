"""Main functions of workers that behave and misbehave; they import no JAX."""

import os
import time

from starleague.actor import sessions


def idle(connection, *arguments):
  """Tells what it got, and waits."""
  connection.send_bytes(repr(arguments).encode())
  time.sleep(3600)


def dying(connection, *arguments):
  """Dies at once."""
  os._exit(3)


def explaining(connection, *arguments):
  """Ends with a reason."""
  connection.send_bytes(b"the floor is missing")


def computing(connection, *arguments):
  """Uses half a second of CPU time, then tells so and waits."""
  while time.process_time() < 0.5:
    pass
  connection.send_bytes(b"done")
  time.sleep(3600)


def deaf(connection, *arguments):
  """Neither reads nor writes after its start."""
  sessions.end_with_parent()
  connection.send_bytes(b"ready")
  time.sleep(3600)
