"""Emphatic weights: worked vectors, ends of games, pieces of a game, bounds, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.learner import losses
from tests.learner.losses.worked import close

ONES = np.ones(5, np.float32)


@pytest.mark.parametrize("steps, discount, rho, weights", [
  # n = 2, decays .5 1 1 .4: F_2 = 1 + .5 F_0, F_3 = 1 + 1 F_1, F_4 = 1 + 1 F_2, F_5 = 1 + .4 F_3.
  (2, [1] * 6, [.5, 2, 1, 1, .4, 1], [1, 1, 1.5, 2, 2.5, 1.8]),
  # n = 1 is the follow-on trace of Sutton et al. 2016, with clipped ratios.
  (1, [.9] * 4, [1, .5, 3, 1], [1, 1.9, 1.855, 2.6695]),
  # A game ends after step 2: no weight after it counts a step before it.
  (2, [1, 1, 0, 1, 1, 1], [1] * 6, [1, 1, 2, 1, 1, 2]),
  (3, [1] * 5, [0] * 5, [1] * 5),
  (8, [1] * 5, [1] * 5, [1] * 5),
])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_emphatic_worked(wrap, steps, discount, rho, weights):
  found, _ = wrap(losses.emphatic_weights)(
    np.float32(discount), np.float32(rho), losses.emphatic_init(steps))
  close(found, weights)


def test_a_higher_clip_lets_the_ratio_through():
  found, _ = losses.emphatic_weights(
    ONES, np.float32([3, 1, 1, 1, 1]), losses.emphatic_init(1), clip_rho=2.0)
  close(found, [1, 3, 4, 5, 6])


def test_pieces_of_a_game_have_the_weights_of_the_whole():
  rng = np.random.default_rng(0)
  discount, rho = np.ones(23, np.float32), np.float32(np.exp(rng.normal(size=23)))
  for steps in (1, 4, 7):
    whole, last = losses.emphatic_weights(discount, rho, losses.emphatic_init(steps))
    state, parts = losses.emphatic_init(steps), []
    for part in (slice(0, 5), slice(5, 6), slice(6, 23)):
      weights, state = losses.emphatic_weights(discount[part], rho[part], state)
      parts.append(weights)
    close(np.concatenate(parts), whole)
    close(state.trace, last.trace)
    assert float(whole.max()) <= 1 + 22 // steps


def test_emphatic_weights_pass_no_gradient():
  gradients = jax.grad(lambda *x: losses.emphatic_weights(*x, losses.emphatic_init(2))[0].sum(),
                       argnums=(0, 1))(jnp.asarray(ONES), jnp.asarray(ONES))
  assert all((g == 0).all() for g in gradients)


def test_wrong_shapes_are_refused():
  with pytest.raises(AssertionError):
    losses.emphatic_weights(ONES, ONES[:4], losses.emphatic_init(2))
