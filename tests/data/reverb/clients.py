"""Clients of a data server of one player, for tests."""

import numpy as np

from starleague.data.reverb import datasets, writer
from tests.data.reverb.server_process import CONFIG, UNROLL_LENGTH

PARAMS = {"torso": {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}, "b": np.float32([0.5])}


def make_writer(address, **options):
  return writer.TrajectoryWriter(
    address, "main", CONFIG, UNROLL_LENGTH, 2, **{"deadline_s": 10} | options)


def make_dataset(address, batch_size, **options):
  return datasets.dataset(
    address, batch_size, "main", CONFIG, UNROLL_LENGTH, **{"deadline_s": 10} | options)
