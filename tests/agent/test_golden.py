"""No module of the agent changes what it computes unnoticed."""

import json

import numpy as np
import pytest

from tests.agent import golden

KEPT = json.loads(golden.PATH.read_text())
MODULES = golden.modules()


def test_every_module_is_kept():
  assert list(KEPT) == list(MODULES)
  assert min(len(values) for values in KEPT.values()) >= 5  # the five values
  assert all(np.ptp(values) > 1e-3 for values in KEPT.values())


@pytest.mark.parametrize("name", list(MODULES))
def test_a_module_gives_the_numbers_kept(name):
  np.testing.assert_allclose(
    golden.numbers(MODULES[name]), KEPT[name], rtol=1e-4, atol=1e-4,
    err_msg="If the change is meant, renew the file: python -m tests.agent.golden")
