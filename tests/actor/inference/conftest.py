"""The model that the tests of the inference service share."""

import pytest

from tests.actor.inference.serving import SLOTS, make_model


@pytest.fixture(scope="module")
def model():
  return make_model(SLOTS)
