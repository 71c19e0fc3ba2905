import struct

import jax.numpy as jnp
import numpy as np
import pytest
from tensorboardX.proto import event_pb2

from starleague.learner.metrics import MetricsWriter


def read_events(directory):
  """Reads the events of all files in a directory in TensorBoard's order, by name."""
  events = []
  for path in sorted(directory.glob("*tfevents*")):
    data = path.read_bytes()
    while data:  # a record: length, checksum, message, checksum
      length, = struct.unpack("<Q", data[:8])
      events.append(event_pb2.Event.FromString(data[12:12 + length]))
      data = data[16 + length:]
  return events


def scalars(events):
  return [(event.step, value.tag, value.simple_value)
          for event in events for value in event.summary.value]


def test_scalars_arrive_with_their_steps(tmp_path):
  with MetricsWriter(tmp_path) as writer:
    writer.write(3, {"loss/total": jnp.float32(0.5), "skipped": np.int32(2), "norm": 1.25})
    writer.write(4, {"loss/total": jnp.full((1,), -2.0)})
  assert scalars(read_events(tmp_path)) == [
    (3, "loss/total", 0.5), (3, "skipped", 2.0), (3, "norm", 1.25), (4, "loss/total", -2.0)]


def test_flush_makes_scalars_readable_before_close(tmp_path):
  writer = MetricsWriter(tmp_path, flush_seconds=10_000)
  writer.write(1, {"loss": 1.0})
  writer.flush()
  assert scalars(read_events(tmp_path)) == [(1, "loss", 1.0)]
  writer.close()


def test_resumed_writer_hides_later_steps_of_the_previous_one(tmp_path):
  with MetricsWriter(tmp_path) as writer:
    for step in range(5):
      writer.write(step, {"loss": float(step)})
  with MetricsWriter(tmp_path, resume_step=3) as writer:  # most likely within the same second
    writer.write(3, {"loss": -3.0})
  events = read_events(tmp_path)
  kinds = [event.WhichOneof("what") for event in events]
  assert kinds == ["file_version", *["summary"] * 5, "file_version", "session_log", "summary"]
  # TensorBoard drops earlier values from this step on.
  assert events[7].session_log.status == event_pb2.SessionLog.START and events[7].step == 3
  assert scalars(events)[4:] == [(4, "loss", 4.0), (3, "loss", -3.0)]


def test_old_scalars_are_flushed_by_the_next_write(tmp_path):
  writer = MetricsWriter(tmp_path, flush_seconds=0.0)
  writer.write(1, {"loss": 1.0})
  assert scalars(read_events(tmp_path)) == [(1, "loss", 1.0)]
  writer.close()


def test_array_is_rejected_by_name(tmp_path):
  with MetricsWriter(tmp_path) as writer:
    with pytest.raises(ValueError, match=r"'loss'.*shape \(2,\)"):
      writer.write(0, {"fine": 1.0, "loss": np.zeros(2)})
  assert scalars(read_events(tmp_path)) == []
