"""Makers of the adapters: one line for a package that is not installed."""

import sys

import pytest

from starleague.environments.skirmish import adapters

ROOM = "starleague.environments.skirmish.adapters"


@pytest.mark.parametrize("maker, package", [
  ("make_gymnasium", "gymnasium"), ("make_pettingzoo", "pettingzoo")])
def test_a_package_that_is_not_installed_is_named_with_its_command(monkeypatch, maker, package):
  monkeypatch.delitem(sys.modules, f"{ROOM}.{package}", raising=False)
  monkeypatch.setitem(sys.modules, package, None)
  with pytest.raises(adapters.MissingPackageError) as caught:
    getattr(adapters, maker)()
  assert str(caught.value) == (
    f"{maker} needs the package '{package}', which is not installed: "
    "pip install 'starleague[adapters]'")
  assert isinstance(caught.value, ImportError)
