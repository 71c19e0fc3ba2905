"""The commands for a GPU, with small sizes on this machine's processor."""

import math
import os
import subprocess
import sys

import pytest

NAMES = {
  "update_agent_steps_per_second", "update_milliseconds", "update_model_tflops",
  "update_model_tflops_per_second", "update_peak_memory_gib", "update_compile_seconds",
  "update_mfu", "feeding_agent_steps_per_second", "feeding_megabytes_per_second",
  "feeding_update_agent_steps_per_second", "feeding_update_ratio",
  "acting_agent_steps_per_second", "skirmish_environment_steps_per_second",
  "skirmish_agent_steps_per_second", "skirmish_compile_seconds", "total_seconds"}


@pytest.mark.slow
def test_every_part_prints_its_figures():
  done = subprocess.run(
    [sys.executable, "-m", "benchmarks.gpu", "--preset", "mini", "--unroll_length", "2",
     "--sequences", "3", "--acting", "4", "--tier", "mini", "--games", "4", "--steps", "2",
     "--rounds", "2", "--peak_flops", "1e12"],
    capture_output=True, text=True, check=False, timeout=600,
    env=os.environ | {"JAX_PLATFORMS": "cpu"})
  assert done.returncode == 0, done.stderr
  lines = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
  texts = {name: lines.pop(name) for name in
           ("device", "jax", "preset", "dtype", "update_peak_memory_of", "feeding_from")}
  assert texts | {"jax": ""} == {
    "device": "cpu", "jax": "", "preset": "mini", "dtype": "bfloat16",
    "update_peak_memory_of": "process", "feeding_from": "reverb"}
  figures = {name: float(value) for name, value in lines.items() if name in NAMES}
  assert figures.keys() == NAMES
  assert all(math.isfinite(value) and value > 0 for value in figures.values()), figures
  # The figures agree with one another: 3 sequences of 2 steps.
  assert figures["update_agent_steps_per_second"] == pytest.approx(
    6e3 / figures["update_milliseconds"], rel=1e-3)
  assert figures["update_mfu"] == pytest.approx(figures["update_model_tflops_per_second"], rel=1e-3)
  assert figures["feeding_update_ratio"] == pytest.approx(
    figures["feeding_update_agent_steps_per_second"] / figures["update_agent_steps_per_second"],
    rel=1e-3)
  # A step of mini's forward pass is some 10 million operations, four times that in an update.
  assert 1e-5 < figures["update_model_tflops"] < 1e-2


def test_feeding_alone_is_refused():
  done = subprocess.run([sys.executable, "-m", "benchmarks.gpu", "--parts", "feeding"],
                        capture_output=True, text=True, check=False, timeout=300)
  assert done.returncode == 2
  assert "feeding is compared with update, give both" in done.stderr
