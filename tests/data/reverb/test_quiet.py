"""A user sees only what the project prints: Reverb and TensorFlow are silent."""

import os
import subprocess
import sys
import textwrap

import pytest

from starleague.data.reverb import quiet

RUN = textwrap.dedent("""
    import numpy as np
    from starleague.agent import config, types
    from starleague.data import wire
    from starleague.data.reverb import datasets, parameters, server, writer

    CONFIG, T = config.mini(), 2
    serving = server.make_server(server.make_tables(["main"], CONFIG, T, min_size=1, tolerance=4))
    address = f"localhost:{serving.port}"
    sender = writer.TrajectoryWriter(address, "main", CONFIG, T, num_rows=1)
    for _ in range(2):
      sender.send("main", wire.pack(types.zeros(types.trajectory_spec(CONFIG, T))))
    sender.flush()
    publisher = parameters.ParameterPublisher(address, "main")
    publisher(lambda: {"w": np.zeros(3)}, 1)
    publisher.flush()
    parameters.ParameterFetcher(address, "main", {"w": np.zeros(3)})()
    with datasets.dataset(address, 2, "main", CONFIG, T) as batches:
      next(batches)
    serving.checkpoint()
    sender.close()
    publisher.close()
""")


@pytest.mark.parametrize("end", ["serving.stop()", "pass  # the process stops the server"])
def test_server_writer_and_sampler_print_nothing(tmp_path, end):
  """From the imports to the shutdown, in one process; no temporary folder is left."""
  environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
  done = subprocess.run(
    [sys.executable, "-c", RUN + end], capture_output=True, text=True, timeout=300,
    env={**environment, "TMPDIR": str(tmp_path), "JAX_PLATFORMS": "cpu"}, check=False)
  assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
  assert not list(tmp_path.iterdir())


def test_quiet_stderr_drops_the_lines_of_reverb_only(capfd):
  with quiet.quiet_stderr():
    os.write(2, b"[reverb/cc/client.cc:165] Sampler ...\nkept\n[reverb/cc/a.cc:1] more\n")
    with quiet.quiet_stderr():
      os.write(2, b"kept too\n")
  os.write(2, b"[reverb/cc/b.cc:2] outside\n")
  assert capfd.readouterr().err == "kept\nkept too\n[reverb/cc/b.cc:2] outside\n"


def test_quiet_stderr_passes_lines_on_after_an_exception(capfd):
  with pytest.raises(ZeroDivisionError), quiet.quiet_stderr():
    os.write(2, b"before the error\n")
    raise ZeroDivisionError
  assert capfd.readouterr().err == "before the error\n"
