"""Sizes of the program of rollouts."""

import pytest

from starleague.actor import rollout_types


def test_invalid_sizes_are_rejected():
  with pytest.raises(ValueError, match="inference_batch must be in 1..8.*found 9"):
    rollout_types.RolloutConfig(games=4, inference_batch=9, iterations=1)
