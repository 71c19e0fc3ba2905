"""Gaussian latents: divergence against numerical integration, samples, corrections."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from starleague.companions import latent


def test_the_divergence_is_the_integral():
  q = latent.Gaussian(jnp.array([0.3]), jnp.array([-0.5]))
  p = latent.Gaussian(jnp.array([-0.4]), jnp.array([0.2]))
  x = np.linspace(-12, 12, 200_001)

  def density(g):
    std = np.exp(float(g.log_std[0]))
    return np.exp(-0.5 * ((x - float(g.mean[0])) / std) ** 2) / (std * np.sqrt(2 * np.pi))

  a, b = density(q), density(p)
  integral = np.sum(np.where(a > 1e-300, a * np.log(np.maximum(a, 1e-300) / b), 0)) * (x[1] - x[0])
  np.testing.assert_allclose(latent.kl(q, p), integral, rtol=1e-4)
  np.testing.assert_allclose(latent.kl(q, q), 0.0, atol=1e-7)


def test_the_divergence_sums_over_the_vector():
  q = latent.Gaussian(jnp.array([[0.0, 1.0]]), jnp.zeros((1, 2)))
  p = latent.Gaussian(jnp.zeros((1, 2)), jnp.zeros((1, 2)))
  np.testing.assert_allclose(latent.kl(q, p), [0.5])


def test_noise_stands_for_a_sample():
  found = latent.sample(latent.Gaussian(jnp.array([2.0]), jnp.log(jnp.array([3.0]))),
                        jnp.array([-1.0]))
  np.testing.assert_allclose(found, [-1.0], rtol=1e-6)


def test_a_base_is_corrected():
  base = latent.Gaussian(jnp.array([1.0, 2.0]), jnp.array([0.5, -9.0]))
  transformed = hk.without_apply_rng(hk.transform(
    lambda x: latent.gaussian(x, 2, "layer", base)))
  params = transformed.init(jax.random.key(0), jnp.ones(3))
  params = jax.tree.map(jnp.zeros_like, params)
  found = transformed.apply(params, jnp.ones(3))
  np.testing.assert_array_equal(found.mean, base.mean)
  np.testing.assert_array_equal(found.log_std, [0.5, -5.0])  # clipped


def test_a_normal_is_the_base_of_others():
  found = latent.normal(3, 0.1)
  np.testing.assert_array_equal(found.mean, np.zeros(3))
  np.testing.assert_allclose(latent.sample(found, jnp.ones(3)), 0.1, rtol=1e-6)
