"""All losses against their float64 twins and rlax, under jit and vmap; see `loss_cases`."""

import functools
import pathlib
import re

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies

from starleague.learner import losses
from tests.learner import loss_cases

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Functions of rlax used here warn that distrax replaces them.
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
# rlax's inverse of the value rescaling cancels in float32; this project's form does not.
RLAX_BOUNDS = {"unscale_value": 2e-3, "double_q_errors": 2e-3}
# Types, parts of other functions, and functions that return masks.
NOT_CASES = {"EmphaticState", "emphatic_init", "PopArtState", "popart_init", "popart_preserve",
             "popart_statistics", "popart_unnormalise", "masked_cross_entropy", "illegal_labels"}


@functools.cache
def compiled(function):
  return jax.jit(function)


def test_every_loss_has_a_twin():
  assert {case.name.split(",")[0] for case in loss_cases.CASES} | NOT_CASES == set(losses.__all__)


@pytest.mark.parametrize("case", loss_cases.CASES, ids=lambda case: case.name)
@hypothesis.settings(max_examples=20, deadline=None)
@hypothesis.given(seed=strategies.integers(0, 2**32 - 1))
def test_twin(case, seed):
  inputs = case.draw(np.random.default_rng(seed))
  found = compiled(case.ours)(*inputs)
  assert loss_cases.error(found, case.twin(*inputs)) <= loss_cases.BOUND
  if case.rlax is not None:
    bound = RLAX_BOUNDS.get(case.name, loss_cases.BOUND)
    assert loss_cases.error(found, compiled(case.rlax)(*inputs)) <= bound


@pytest.mark.parametrize("case", loss_cases.CASES, ids=lambda case: case.name)
def test_vmap_equals_single_calls(case):
  rows = [case.draw(np.random.default_rng(seed)) for seed in range(3)]
  together = jax.jit(jax.vmap(case.ours))(*(np.stack(x) for x in zip(*rows, strict=True)))
  for i, row in enumerate(rows):
    one = compiled(case.ours)(*row)
    assert loss_cases.error(jax.tree.map(lambda x, i=i: x[i], together), one) <= 1e-6


def test_error_is_of_the_worst_entry():
  assert loss_cases.error((np.array([1.0, 2.0]), 5.0), (np.array([1.0, 2.5]), 4.0)) == 0.25
  assert loss_cases.error(np.array([np.nan]), np.array([1.0])) == np.inf


def test_page_lists_all_losses_and_cites_existing_tests():
  page = (ROOT / "docs" / "losses.md").read_text()
  for name in losses.__all__:
    assert f"`{name}`" in page or name in (
      "EmphaticState", "emphatic_init", "PopArtState", "popart_init"), name
  for case in loss_cases.CASES:
    name, _, what = case.name.partition(",")
    assert f"| `{name}`{',' * bool(what)}{what} | " in page, case.name
  named = re.findall(r"`(tests/\S+/)?(\w+\.py)::(\w+)`", page)
  assert len(named) >= 8
  for folder, file, test in named:
    assert f"def {test}(" in (ROOT / (folder or "tests/learner/") / file).read_text(), test
