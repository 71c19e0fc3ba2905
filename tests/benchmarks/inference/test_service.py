"""The benchmark of the inference service counts all batches that it times."""

import sys

import pytest

from benchmarks.inference import service
from starleague.agent import config as agent_config


class Device:
  """A clock, and a device that computes one batch at a time in a second each."""

  now = free = 0.0

  def perf_counter(self):
    return self.now

  def start(self, player, rows, requests):
    self.free = max(self.now, self.free) + 1.0
    return Batch(self, self.free)


class Batch:
  """A batch on its way."""

  def __init__(self, device, end):
    self.device, self.end = device, end

  def block_until_ready(self):
    self.device.now = max(self.device.now, self.end)
    return self


def test_the_device_is_timed_for_the_batches_that_count(monkeypatch):
  device = Device()
  monkeypatch.setattr(service, "time", device)
  bench = service.Bench.__new__(service.Bench)
  bench._config, bench._model = agent_config.preset("mini"), device
  assert bench.device_rate(size=8, seconds=3.0) == 8.0


@pytest.mark.parametrize("arguments, message", [
  (["--processes", "0"], "--processes: expected at least 1, found 0"),
  (["--games", "4", "0"], "--games: expected at least 1, found 0"),
  (["--batches", "-8", "8"], "--batches: expected at least 1, found -8"),
  (["--rounds", "0"], "--rounds: expected at least 1, found 0")])
def test_wrong_options_are_one_line(arguments, message, monkeypatch, capsys):
  monkeypatch.setattr(sys, "argv", ["service", *arguments])
  with pytest.raises(SystemExit) as error:
    service.main()
  assert error.value.code == 2
  assert capsys.readouterr().err.splitlines()[-1].endswith(f"error: {message}")
