"""TD(lambda) and explained variance: worked vectors, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.learner import losses
from tests.learner.losses.worked import A, B, C, arrays, close


@pytest.mark.parametrize("case, returns, mean_loss", [
  (A, [.728, .86, 1], .219997), (B, [.18, .1, .25], .125817),
  (C, [-.039703, -.144032, .3944, .27], .045918)])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_td_lambda_worked(wrap, case, returns, mean_loss):
  v_tm1, v_t, r_t, discount_t = arrays(*case)
  close(wrap(losses.td_lambda_returns)(v_t, r_t, discount_t), returns)
  close(wrap(losses.td_lambda_loss)(v_tm1, v_t, r_t, discount_t).mean(), mean_loss)


def test_td_lambda_gradient_reaches_the_values_alone():
  v_tm1, v_t, r_t, discount_t = map(jnp.asarray, arrays(*A))
  by_v_tm1, *others = jax.grad(
    lambda *x: losses.td_lambda_loss(*x).sum(), argnums=(0, 1, 2, 3))(v_tm1, v_t, r_t, discount_t)
  close(by_v_tm1, v_tm1 - np.array([.728, .86, 1]))
  assert all((g == 0).all() for g in others)


def test_explained_variance():
  returns = jnp.array([1., -1., 3., 5.])
  ones = jnp.ones(4)
  assert losses.explained_variance(returns, returns, ones) == 1.0
  assert losses.explained_variance(returns - 2.0, returns, ones) == pytest.approx(1.0)
  assert losses.explained_variance(jnp.zeros(4), returns, ones) == 0.0
  assert losses.explained_variance(-returns, returns, ones) == pytest.approx(-3.0)
  assert losses.explained_variance(returns, ones, ones) == 0.0
  weight = jnp.array([1., 1., 0., 1.])
  spoilt = returns.at[2].set(100.0)
  assert losses.explained_variance(returns, spoilt, weight) == 1.0
  assert losses.explained_variance(returns, spoilt, jnp.zeros(4)) == 0.0
