"""The environment variables of a run's processes."""

import pytest

from starleague.experiments.run import supervision


@pytest.mark.parametrize("batch_size, accumulate, cores, devices", [
  (32, 1, 1, 1), (32, 1, 2, 2), (32, 1, 6, 4), (32, 4, 16, 8), (6, 1, 4, 3), (7, 1, 4, 1),
  (8, 8, 4, 1),
])
def test_devices_divide_the_batch(batch_size, accumulate, cores, devices):
  variables = supervision.data_parallel(
    {"XLA_FLAGS": "--a", "X": "y"}, batch_size, accumulate, cores)
  assert variables["JAX_NUM_CPU_DEVICES"] == str(devices)
  assert variables["XLA_FLAGS"] == f"--a {supervision.ONE_THREAD}" and variables["X"] == "y"
