"""The benchmark of TPU programs names a device without known peaks before it compiles."""

import importlib
import os
import sys
import types

import pytest
from jax._src import tpu_custom_call


@pytest.fixture
def tpu(monkeypatch):
  """The benchmark. Its import changes the process, which is restored afterwards."""
  for name in ("JAX_PLATFORMS", "TPU_SKIP_MDS_QUERY", "TPU_STDERR_LOG_LEVEL"):
    monkeypatch.setenv(name, os.environ.get(name, ""))
  monkeypatch.setattr(tpu_custom_call, "is_cloud_tpu_older_than",
                      tpu_custom_call.is_cloud_tpu_older_than)
  monkeypatch.delitem(sys.modules, "benchmarks.tpu", raising=False)
  return importlib.import_module("benchmarks.tpu")


def test_a_device_without_known_peaks_is_one_line(tpu, monkeypatch, capsys):
  kinds = {"v4:4x4x4": "TPU v4", "v5p:2x2x1": "TPU v5"}
  monkeypatch.setattr(tpu.topologies, "get_topology_desc", lambda platform, topology_name: (
    types.SimpleNamespace(devices=[types.SimpleNamespace(device_kind=kinds[topology_name])])))
  monkeypatch.setattr(tpu, "programs", lambda config, options: pytest.fail("work before the check"))
  monkeypatch.setattr(sys, "argv", ["tpu", "--topologies", *kinds])
  with pytest.raises(SystemExit) as error:
    tpu.main()
  assert error.value.code == 2
  assert capsys.readouterr().err.splitlines()[-1].endswith(
    "error: --topologies: expected devices TPU v3, TPU v4, TPU v5 lite, TPU v6 lite; found TPU v5 "
    "in v5p:2x2x1")
