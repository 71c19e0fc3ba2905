"""The server's benchmark, on the smallest map."""

import math
import os
import subprocess
import sys

import jax
import pytest


@pytest.mark.slow
def test_a_round_prints_its_figures():
  done = subprocess.run(
    [sys.executable, "-m", "benchmarks.sc2_server", "--map", "SkirmishMiniOpen", "--loops", "50",
     "--rounds", "0", "--cold", "1"], capture_output=True, text=True, check=False, timeout=1200,
    env=os.environ | {"JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir or ""})
  assert done.returncode == 0, done.stderr
  name, *fields = done.stdout.split()
  assert name == "cold"
  figures = {key: float(value) for key, value in (field.split("=") for field in fields)}
  assert all(math.isfinite(value) and value > 0 for value in figures.values()), figures
  assert figures.keys() == {"observation_cpu_s", "observation_s", "step_cpu_s", "step_s",
                            "loops_per_cpu_s", "loops_per_s"}
  # The first step comes after the first observation.
  assert figures["step_cpu_s"] >= figures["observation_cpu_s"]
  assert figures["step_s"] > figures["observation_s"]
