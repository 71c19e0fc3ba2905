"""The data server: its tables, its port, its checkpoint, its imports."""

import subprocess
import sys

import pytest

from starleague.data import wire
from starleague.data.reverb import parameters
from starleague.data.reverb.server import make_tables
from tests.data.reverb.clients import PARAMS, make_dataset, make_writer
from tests.data.reverb.server_process import CONFIG, UNROLL_LENGTH, packed
from tests.processes import HANG_S


def test_tables_that_would_drop_trajectories_are_refused():
  with pytest.raises(ValueError, match=r"at least 42 = .*found 41"):
    make_tables(["main"], CONFIG, UNROLL_LENGTH, min_size=10, tolerance=10, max_size=41)
  with pytest.raises(ValueError, match="distinct"):
    make_tables(["main", "main"], CONFIG, UNROLL_LENGTH)


def test_port_in_use_is_refused(serve):
  address = serve()
  port = int(address.split(":")[1])
  with pytest.raises(OSError, match=f"port {port} is in use"):
    serve(port=port)


def test_a_checkpoint_keeps_unsampled_trajectories(serve, tmp_path):
  address = serve(checkpoint_dir=tmp_path, tolerance=16)
  sender = make_writer(address)
  for number in range(6):
    sender.send("main", packed(number))
  sender.flush()
  parameters.publish(serve.servers[0].localhost_client(), "main", PARAMS, 11)
  before = []
  client = serve.servers[0].localhost_client()
  for sample in client.sample("main", 4, emit_timesteps=False):
    before.append(int(sample.data[sorted(wire.Packed._fields).index("int32")][0, 0]))
  client.checkpoint()
  serve.servers.pop().stop()

  address = serve(checkpoint_dir=tmp_path, tolerance=16)
  assert parameters.ParameterFetcher(address, "main", PARAMS, deadline_s=5)().step == 11
  with make_dataset(address, 8, deadline_s=2) as batches:
    after = next(batches).int32[0, :, 0].tolist()
  assert sorted(before + after) == sorted([*range(6)] * 2)


def test_reverb_is_imported_on_first_use_only():
  """A learner's losses and an actor's games need neither Reverb nor TensorFlow."""
  program = (
    "import sys, starleague.data.reverb.parameters, starleague.data.reverb.writer; "
    "import starleague.data.reverb.server; "
    "print(sorted({'reverb', 'tensorflow'} & set(sys.modules)))")
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                        timeout=HANG_S)
  assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
