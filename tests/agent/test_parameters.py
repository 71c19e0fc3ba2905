"""Kinds of parameters of the `mini` policy."""

import jax
import pytest

from starleague.agent import config, parameters, policy


@pytest.fixture(scope="module")
def shapes():
  return jax.eval_shape(policy.make_policy(config.mini()).init, jax.random.key(0))


def chosen(mask, shapes):
  """Returns (module, name) of the parameters of a mask, and their number of elements."""
  found = {(module, name): shapes[module][name].size
           for module, names in mask.items() for name, belongs in names.items() if belongs}
  return set(found), sum(found.values())


def test_value_functions_are_their_modules(shapes):
  names, size = chosen(parameters.value_function_mask(shapes), shapes)
  assert names == {(module, name) for module, entries in shapes.items() for name in entries
                   if module.startswith("baselines/")}
  assert {("baselines/winloss_value", "w"), ("baselines/build_order", "unit_types")} <= names
  assert {module for module, _ in names}.isdisjoint({"core/lstm_0", "scalar_encoder/build_order"})
  assert 0.1 < size / sum(x.size for x in jax.tree.leaves(shapes)) < 0.4


def test_imitated_weights_have_two_axes_and_are_read_by_the_policy(shapes):
  names, _ = chosen(parameters.imitated_weight_mask(shapes), shapes)
  of_values, _ = chosen(parameters.value_function_mask(shapes), shapes)
  assert not names & of_values
  assert {name for _, name in names} == {
    "w", "recurrent", "classes", "attributes", "numbers", "planes", "entities", "unit_types",
    "places", "lstm_input_w", "lstm_recurrent", "query_hidden_w", "query_input_w", "update_w"}
  assert {name for module, entries in shapes.items() for name in entries
          if (module, name) not in names | of_values} == {
    "b", "bias", "offset", "scale", "recurrent_scale", "cell_scale", "cell_offset", "end_key",
    "lstm_input_b", "query_hidden_b", "query_input_b", "update_b"}
