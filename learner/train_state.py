"""The state of a run: parameters, the optimizer's state, counters and the key of all randomness."""

from typing import NamedTuple

import jax
import numpy as np
import optax

from starleague.agent.types import Array
from starleague.data.trees import Tree, is_key
from starleague.learner import flat


class TrainState(NamedTuple):
  """The state of a run; a run resumed from it equals an uninterrupted one."""

  params: Tree
  opt_state: optax.OptState  # of the parameters as one matrix, see `flat`
  step: Array  # [] int32: batches used, skipped ones included
  key: jax.Array  # [] typed key, constant: step t uses fold_in(key, t)
  skipped: Array  # [] int32: updates not applied because a value was not finite
  consecutive_skipped: Array  # [] int32: skipped updates since the last applied one


def make_optimizer(learning_rate: float | optax.Schedule = 3e-5, *, b1: float = 0.0,
                   b2: float = 0.99, eps: float = 1e-5, max_norm: float | None = None,
                   adjustable: bool = False) -> optax.GradientTransformation:
  """Returns Adam with the published constants (Vinyals et al. 2019, Methods and pseudocode).

  Args:
    learning_rate: a float, or an optax schedule of the number of updates applied.
    b1: decay of the gradient's first moment.
    b2: decay of the gradient's second moment.
    eps: added to the root of the second moment.
    max_norm: global norm to which gradients are clipped; None, as published: no clipping.
    adjustable: keep the learning rate in the optimizer's state, so that `with_learning_rate` can
      change it during a run. A restored state then keeps its own rate.
  """
  def build(learning_rate: float | optax.Schedule) -> optax.GradientTransformation:
    adam = optax.adam(learning_rate, b1=b1, b2=b2, eps=eps)
    return adam if max_norm is None else optax.chain(optax.clip_by_global_norm(max_norm), adam)

  if adjustable:
    return optax.inject_hyperparams(build)(learning_rate=learning_rate)
  return build(learning_rate)


def with_learning_rate(state: TrainState, learning_rate: float) -> TrainState:
  """Returns a state whose adjustable optimizer has another learning rate.

  Args:
    state: a host state, or a replicated one: its arrays are not fetched.
    learning_rate: of all its copies.

  Raises:
    ValueError: the state belongs to an optimizer made without adjustable=True.
  """
  hyperparams = getattr(state.opt_state, "hyperparams", None)
  if hyperparams is None or "learning_rate" not in hyperparams:
    raise ValueError("the optimizer's state holds no learning rate: make the optimizer with "
                     "make_optimizer(..., adjustable=True)")
  old = hyperparams["learning_rate"]
  rate = np.full(old.shape, learning_rate, old.dtype)
  return state._replace(opt_state=state.opt_state._replace(
    hyperparams={**hyperparams, "learning_rate": rate}))


def initial_state(params: Tree, optimizer: optax.GradientTransformation,
                  key: jax.Array) -> TrainState:
  """Returns the host state of a new run.

  Args:
    params: parameters of the network, float32.
    optimizer: see `make_optimizer`.
    key: a typed key, the source of all randomness in updates.

  Raises:
    ValueError: a parameter is not finite.
  """
  for path, leaf in jax.tree_util.tree_leaves_with_path(params):
    if not np.isfinite(np.asarray(leaf)).all():
      raise ValueError(f"parameter {jax.tree_util.keystr(path)} is not finite at the start; "
                       "check its initialiser or the checkpoint that it was loaded from")
  zero = np.zeros((), np.int32)
  state = TrainState(params, optimizer.init(flat.flatten(params, np)), zero, key, zero, zero)
  return jax.tree.map(lambda x: x if is_key(x) else np.asarray(x), state)
