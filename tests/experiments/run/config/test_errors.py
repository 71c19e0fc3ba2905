"""Checks of names in a config."""

import pytest

from starleague.experiments.run.config import errors


def test_names_are_split_at_commas():
  assert errors.split("") == [] and errors.split("a,b") == ["a", "b"]


@pytest.mark.parametrize("names, message", [
  (["a", "c"], "config key 'x.y' names 'c'; expected some of a, b, with commas between."),
  (["a", "b", "a"], "config key 'x.y' names 'a' more than once.")])
def test_unknown_and_repeated_names_are_refused(names, message):
  with pytest.raises(errors.SettingsError) as error:
    errors.check_known("x.y", names, ["a", "b"])
  assert str(error.value) == message
  errors.check_known("x.y", names[:1], ["a", "b"])
