"""Packages that are installed apart: which are missing, and what the message says."""

import importlib.util

import pytest

from starleague.common.errors import UserError
from starleague.data import packages


@pytest.fixture
def missing(monkeypatch):
  """Removes pyarrow and Reverb."""
  find = importlib.util.find_spec
  monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: (
    None if name in ("pyarrow", "reverb") else find(name, *rest)))


@pytest.mark.parametrize("names, remedy", [
  (("reverb", "pyarrow"), "'reverb', which is not installed; on Python 3.11: make setup"),
  (("pyarrow",), "'pyarrow', which is not installed; pip install 'starleague[games]'")])
def test_the_first_missing_package_is_named(missing, names, remedy):
  with pytest.raises(UserError) as error:
    packages.require(*names)
  assert remedy in str(error.value) and error.value.name == names[0]


def test_installed_packages_are_enough():
  packages.require("reverb", "pyarrow")


def test_only_known_packages_are_explained():
  for name, known in (("pyarrow.parquet", True), ("reverb", True), ("starleague.no_such", False),
                      (None, False)):
    error = ModuleNotFoundError("no module", name=name)
    found = packages.explained(error)
    assert (found is not error) == isinstance(found, UserError) == known
  error = ValueError("pyarrow")
  assert packages.explained(error) is error
