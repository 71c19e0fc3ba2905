"""COMA: worked advantages, their mean, gradients."""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies

from starleague.learner import losses
from tests.learner import numpy_twins as twins
from tests.learner.losses.worked import close

twin_test = hypothesis.settings(max_examples=30, deadline=None)


@strategies.composite
def two_logits(draw):
  rng = np.random.default_rng(draw(strategies.integers(0, 2**32 - 1)))
  scale = draw(strategies.sampled_from([0.1, 1.0, 3.0]))
  return (scale * rng.normal(size=(2, 3, 6))).astype(np.float32)


def test_coma_worked():
  advantages = losses.coma_advantages(jnp.array([1., 2., 4.]), jnp.array([.2, .5, .3]))
  close(advantages, [-1.4, -.4, 1.6])


@twin_test
@hypothesis.given(two_logits())
def test_coma_advantages_have_mean_zero(logits):
  probabilities = np.exp(twins.log_softmax(logits[1])).astype(np.float32)
  advantages = losses.coma_advantages(logits[0], probabilities)
  close((probabilities * advantages).sum(-1), np.zeros(3), 1e-5)
  close(advantages - advantages[:, :1], logits[0] - logits[0][:, :1], 1e-5)


def test_coma_loss_gradient():
  q, logits = jnp.array([1., 2., 4.]), jnp.log(jnp.array([.2, .5, .3]))
  for action, advantage in enumerate([-1.4, -.4, 1.6]):
    by_q, by_logits = jax.grad(losses.coma_loss, argnums=(0, 1))(q, logits, jnp.array(action))
    assert (by_q == 0).all()
    close(by_logits, -advantage * (np.eye(3)[action] - np.array([.2, .5, .3])))
