"""Kinds of parameters, by their paths in the tree: value functions, and weights of layers."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from starleague.agent import baselines
from starleague.agent.initialisation import Params


def value_function_mask(params: Params) -> Any:
  """Returns a tree of bool: whether each parameter belongs to the value functions alone.

  The policy reads none of these parameters.

  Args:
    params: parameters of a policy, or their gradients or shapes.
  """
  return _mask(params, lambda module, parameter: _is_of_value_function(module))


def imitated_weight_mask(params: Params) -> Any:
  """Returns a tree of bool: whether a parameter is a weight matrix that imitation trains.

  These are the weights of linear layers, convolutions and embeddings, whose arrays have two or more
  axes. Value functions get no gradient from imitation. Scales, offsets and biases are vectors.

  Args:
    params: parameters of a policy, or their gradients or shapes.
  """
  return _mask(params, lambda module, parameter: (
    np.ndim(parameter) >= 2 and not _is_of_value_function(module)))


def _is_of_value_function(module: str) -> bool:
  return module.split("/")[0] == baselines.SCOPE


def _mask(params: Params, belongs: Callable[[str, Any], bool]) -> Any:
  return jax.tree_util.tree_map_with_path(lambda path, x: belongs(path[0].key, x), params)
