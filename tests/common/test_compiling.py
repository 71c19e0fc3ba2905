"""Garbage collection is suspended during a compilation, and only then."""

import gc

import pytest

from starleague.common import compiling


def test_collection_is_suspended_and_resumed():
  with compiling.without_collection():
    assert not gc.isenabled()
  assert gc.isenabled()


def test_collection_resumes_after_an_error():
  with pytest.raises(KeyError), compiling.without_collection():
    raise KeyError("x")
  assert gc.isenabled()


def test_disabled_collection_stays_disabled():
  gc.disable()
  try:
    with compiling.without_collection():
      pass
    assert not gc.isenabled()
  finally:
    gc.enable()
