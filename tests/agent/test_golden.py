"""Every module of the agent reproduces its reference outputs."""

import json

import numpy as np
import pytest

from tests.agent import golden

KEPT = json.loads(golden.PATH.read_text())
MODULES = golden.modules()


def test_every_module_has_reference_outputs():
  assert list(KEPT) == list(MODULES)
  assert min(len(values) for values in KEPT.values()) >= 5  # the five values
  assert all(np.ptp(values) > 1e-3 for values in KEPT.values())


@pytest.mark.parametrize("name", list(MODULES))
def test_module_reproduces_its_reference_outputs(name):
  np.testing.assert_allclose(
    golden.numbers(MODULES[name]), KEPT[name], rtol=1e-4, atol=1e-4,
    err_msg="If the change is intended, rewrite the file: python -m tests.agent.golden")
