"""Flags of companion systems: every key has a text, values reach the right dataclass."""

import dataclasses
import inspect

import pytest

from starleague.common.errors import UserError
from starleague.companions import registry
from starleague.companions.options import RunOptions
from starleague.experiments.run.companions import system_flags


def test_every_key_is_described():
  for owner in (RunOptions, *(entry.config for entry in registry.systems().values())):
    texts = system_flags.described(owner)
    assert list(texts) == [field.name for field in dataclasses.fields(owner)]
    assert all(texts.values())


def test_texts_do_not_depend_on_the_docstrings_indentation():
  """Python 3.13 removes it."""
  texts = system_flags.described(RunOptions)
  stripped = type("Stripped", (), {"__doc__": inspect.cleandoc(RunOptions.__doc__)})
  assert system_flags.described(stripped) == texts and texts


def test_texts_of_several_lines_are_joined():
  assert system_flags.described(RunOptions)["table"] == (
    '"fifo": every unroll is used once, in order; "uniform" or "prioritised": replay.')


def test_values_reach_options_and_config():
  chosen = system_flags.choose(
    registry.find("impala"), {"steps": 5, "impala.correction": "none"})
  assert (chosen.options.steps, chosen.config.correction) == (5, "none")
  assert chosen.options.task == "minatar-breakout"  # the system's own default


@pytest.mark.parametrize("key", ["r2d2.size", "impala.sise", "stepz"])
def test_keys_of_others_are_refused(key):
  with pytest.raises(UserError) as error:
    system_flags.choose(registry.find("impala"), {key: 1})
  assert f"config key {key!r} is no key of the system 'impala'" in str(error.value)


def test_an_invalid_value_is_refused():
  with pytest.raises(UserError, match="impala.correction: found 'all', expected one of vtrace"):
    system_flags.choose(registry.find("impala"), {"impala.correction": "all"})
