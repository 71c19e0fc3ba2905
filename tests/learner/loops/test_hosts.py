"""The all-host consensus, with the other hosts' votes scripted, and the checks of host flags."""

import jax
import pytest

from starleague.common.errors import UserError
from starleague.learner.loops import hosts
from tests.learner.loops.options import reinforcement_options


def test_batches_end_when_any_host_has_none_or_stops():
  asked = []

  def vote(share):
    asked.append(share)
    other = (0.0, 0.5, 0.5, 1.0)[len(asked) - 1]  # the other host has three batches
    return lambda: max(share, other)

  assert list(hosts.agreed(iter("abcdef"), lambda: 0.25, vote)) == [
    ("a", 0.25), ("b", 0.5), ("c", 0.5)]
  assert asked == [0.25] * 4  # one for each batch and one that ended it

  asked.clear()
  assert list(hosts.agreed(iter("ab"), lambda: 0.0, vote)) == [("a", 0.0), ("b", 0.5)]
  assert asked == [0.0, 0.0, 1.0]

  asked.clear()
  assert list(hosts.agreed(iter("abc"), lambda: float(len(asked)), vote)) == [("a", 0.0)]


def test_the_vote_on_the_next_batch_starts_before_this_update():
  order = []

  def vote(share):
    order.append("vote")
    return lambda: order.append("ask") or share

  for batch, _ in hosts.agreed(iter("ab"), lambda: 0.0, vote):
    order.append(batch)
  assert order == ["vote", "ask", "vote", "a", "ask", "vote", "b", "ask"]


@pytest.mark.parametrize("arguments, message", [
  ((None, 2, 0), "--coordinator is not given"), (("here:1", 2, 2), "--host must be below --hosts")])
def test_contradicting_host_flags_raise(arguments, message):
  with pytest.raises(UserError, match=message):
    hosts.join_hosts(*arguments)


def test_a_batch_that_devices_do_not_divide_raises():
  assert jax.device_count() == 8
  with pytest.raises(UserError, match="'learner.batch_size' must be a multiple of 8 "
                     "devices times 'learner.accumulate' = 2, found 24"):
    hosts.check_hosts({}, reinforcement_options(batch_size=24, accumulate=2))
