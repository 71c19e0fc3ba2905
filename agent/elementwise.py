"""ReLU and layer norm, with gradients that keep little."""

import jax
import jax.numpy as jnp


@jax.custom_jvp
def relu(x: jax.Array) -> jax.Array:
  """Computes `jax.nn.relu`. Its gradient needs the output only, so that the input is not kept."""
  return jnp.maximum(x, 0)


@relu.defjvp
def _relu_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
  y = relu(*primals)
  return y, jnp.where(y > 0, *tangents, 0)


def standardised(x: jax.Array, axes: tuple[int, ...] = (-1,)) -> tuple[jax.Array, jax.Array]:
  """Returns `x` with mean 0 and variance 1 over `axes`, and the inverse deviation; float32."""
  wide = x.astype(jnp.float32)
  centred = wide - wide.mean(axes, keepdims=True)
  factor = jax.lax.rsqrt(jnp.square(centred).mean(axes, keepdims=True) + 1e-5)
  return centred * factor, factor


def layer_norm(x: jax.Array, scale: jax.Array, offset: jax.Array,
               axes: tuple[int, ...] = (-1,)) -> jax.Array:
  """Computes layer normalisation.

  Args:
    x: [..., C].
    scale: [C] float32.
    offset: [C] float32.
    axes: over which `x` is normalised.

  Returns:
    [..., C] of the dtype of `x`; statistics are float32.
  """
  return (standardised(x, axes)[0] * scale + offset).astype(x.dtype)
