"""Parameter initialisation that does not run the network.

Haiku's `init` evaluates the whole network, one operation at a time, to find its parameters. Here
the network is traced with abstract values, and the trace records each parameter request. The
initialisers then run on their own, with the keys that Haiku would pass them. The parameters equal
those of Haiku's `init` bit for bit.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

Params = Any  # module name -> parameter name -> array

# Truncated normals are drawn in a few sizes and cut to the parameter's shape. Compiling a draw
# takes 0.3 s for each size; drawing 65,536 numbers takes 2 ms.
_SMALLEST_DRAW, _GROWTH = 2 ** 16, 4
# XLA's CPU code computes full vectors of a row and the rest of the row by different instructions,
# which may round differently. Rows that end in a partial vector are drawn in their own shape.
_VECTOR = 8
_CONSTANTS: dict[Any, Callable[..., np.ndarray]] = {jnp.zeros: np.zeros, jnp.ones: np.ones}


class _Request(NamedTuple):
  """A parameter request of a network."""

  module: str
  name: str
  shape: tuple[int, ...]
  initialiser: hk.initializers.Initializer


def make_init(network: Callable[..., Any],
              make_inputs: Callable[[], tuple[Any, ...]]) -> Callable[[jax.Array], Params]:
  """Returns `init(key) -> params`, float32, equal to that of `hk.transform(network)`.

  Args:
    network: the function that `hk.transform` takes. It must draw no random numbers of its own.
    make_inputs: returns example inputs of the network.
  """
  def recorded(requests: list[_Request], *inputs: Any) -> None:
    def record(next_creator: Callable[..., jax.Array], shape: Sequence[int], dtype: DTypeLike,
               initialiser: hk.initializers.Initializer,
               context: hk.GetterContext) -> jax.Array:
      del next_creator, dtype
      module, _, name = context.full_name.rpartition("/")
      requests.append(_Request(module, name, tuple(shape), initialiser))
      return jnp.zeros(shape, jnp.float32)

    with hk.custom_creator(record):
      network(*inputs)

  def init(key: jax.Array) -> Params:
    if isinstance(key, jax.core.Tracer) or not _draws_are_prefixes(key):
      return hk.transform(network).init(key, *make_inputs())
    requests: list[_Request] = []
    trace = hk.transform(functools.partial(recorded, requests)).init
    jax.eval_shape(lambda key: trace(key, *make_inputs()), key)
    return _create(key, requests)

  return init


def _draws_are_prefixes(key: jax.Array) -> bool:
  """Whether the first n of m > n random numbers of a key are its n random numbers."""
  partitionable = jax.config.jax_threefry_partitionable  # type: ignore[attr-defined]
  return bool(partitionable) and (
    not jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    or str(jax.random.key_impl(key)) == "threefry2x32")


def _create(key: jax.Array, requests: list[_Request]) -> Params:
  """Creates parameters in the order of their requests; each random one takes the next key."""
  keys = hk.PRNGSequence(key)
  params: dict[str, dict[str, np.ndarray | jax.Array]] = {}
  for module, name, shape, initialiser in requests:
    if initialiser in _CONSTANTS:
      value = _CONSTANTS[initialiser](shape, np.float32)
    elif type(initialiser) is hk.initializers.TruncatedNormal:
      value = _truncated_normal(next(keys), shape, initialiser)
    else:
      value = _run(initialiser, shape, next(keys))
    params.setdefault(module, {})[name] = value
  # A transfer: since JAX 0.12 `jnp.asarray` compiles a program for each shape of a numpy array.
  return jax.device_put(params)


def _truncated_normal(key: jax.Array, shape: tuple[int, ...],
                      initialiser: hk.initializers.TruncatedNormal) -> np.ndarray:
  """Draws the initialiser's numbers with a program that other shapes share."""
  count = int(np.prod(shape))
  drawn: tuple[int, ...] = shape
  if shape[-1] < _VECTOR or shape[-1] % _VECTOR == 0:
    size = _SMALLEST_DRAW
    while size < count:
      size *= _GROWTH
    drawn = (size,)
  draws = jax.random.truncated_normal(
    key, initialiser.lower, initialiser.upper, drawn, jnp.float32)
  unscaled = np.ravel(draws)[:count].reshape(shape)
  return (np.asarray(initialiser.stddev, np.float32) * unscaled
          + np.asarray(initialiser.mean, np.float32))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _run(initialiser: hk.initializers.Initializer, shape: tuple[int, ...],
         key: jax.Array) -> jax.Array:
  """Runs any initialiser that takes one key: it gets this key, not a split of it."""
  next_is_key = (key, (key,))  # the state of a PRNGSequence that returns `key` first
  return hk.transform(lambda: initialiser(shape, jnp.float32)).apply({}, next_is_key)
