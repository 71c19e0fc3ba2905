"""Costs of the objectives' terms: the published ones, and those that are refused."""

import math

import pytest

from starleague.agent.types import REWARDS
from starleague.agent.vocabulary import Arguments
from starleague.learner.weights import RLWeights, SLWeights

ONES = (1.0,) * len(REWARDS)


def test_the_defaults_are_the_published_costs():
  weights = RLWeights()
  assert weights.policy == (1.0, 4.0, 6.0, 6.0, 6.0)
  assert weights.baseline == (10.0, 1.0, 1.0, 1.0, 1.0)
  assert weights.upgo == (1.0, 0.0, 0.0, 0.0, 0.0)
  assert (weights.entropy, weights.teacher_kl, weights.function_kl) == (1e-4, 2e-3, 1e-1)
  assert (weights.function_kl_seconds, weights.td_lambda, weights.vtrace_lambda) == (240, 0.8, 1)
  assert (weights.clip_rho, weights.clip_pg_rho) == (1.0, 1.0)
  assert SLWeights() == SLWeights(arguments=Arguments(*[1.0] * 7), l2=1e-5)


@pytest.mark.parametrize("costs, message", [
  ({"policy": ONES[1:]}, r"RLWeights.policy has 4 entries; expected 5, one for each of win"),
  ({"baseline": (*ONES, 1.0)}, r"RLWeights.baseline has 6 entries; expected 5"),
  ({"upgo": ()}, r"RLWeights.upgo has 0 entries; expected 5"),
  ({"policy": (*ONES[1:], -1.0)}, r"RLWeights.policy is .*-1.0\); expected finite numbers"),
  ({"baseline": (math.nan, *ONES[1:])}, "RLWeights.baseline is .nan.*expected finite numbers"),
  ({"entropy": -1e-4}, "RLWeights.entropy is -0.0001; expected finite numbers of at least 0"),
  ({"clip_rho": math.inf}, "RLWeights.clip_rho is inf; expected finite numbers of at least 0"),
  ({"td_lambda": 1.5}, "RLWeights.td_lambda is 1.5; expected a number from 0 to 1"),
  ({"vtrace_lambda": 1.01}, "RLWeights.vtrace_lambda is 1.01; expected a number from 0 to 1"),
])
def test_impossible_costs_of_reinforcement_raise(costs, message):
  with pytest.raises(ValueError, match=message):
    RLWeights(**costs)


@pytest.mark.parametrize("costs, message", [
  ({"l2": -1.0}, "SLWeights: l2 is -1.0; expected a finite number of at least 0"),
  ({"arguments": Arguments(*[1.0] * 7)._replace(delay=math.nan)}, "SLWeights: delay is nan"),
  ({"arguments": Arguments(*[1.0] * 7)._replace(function=math.inf)}, "SLWeights: function is inf"),
])
def test_impossible_costs_of_imitation_raise(costs, message):
  with pytest.raises(ValueError, match=message):
    SLWeights(**costs)


@pytest.mark.parametrize("teacher_kl, function_kl, expected", [
  (0.0, 0.0, False), (1e-3, 0.0, True), (0.0, 1e-3, True), (1e-3, 1e-3, True)])
def test_the_teacher_is_needed_by_either_kl(teacher_kl, function_kl, expected):
  weights = RLWeights(teacher_kl=teacher_kl, function_kl=function_kl)
  assert weights.uses_teacher is expected


def test_limits_are_allowed_and_costs_are_static_under_jit():
  weights = RLWeights(td_lambda=1.0, vtrace_lambda=0.0, policy=(0.0,) * len(REWARDS))
  assert hash(weights) == hash(RLWeights(td_lambda=1.0, vtrace_lambda=0.0, policy=(0.0,) * 5))
  assert weights != RLWeights()
