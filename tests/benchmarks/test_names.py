"""Every name that a benchmark takes from the project exists: most benchmarks run rarely."""

import ast
import importlib
import pathlib
import types

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BENCHMARKS = sorted(
  path for folder in ("benchmarks", "benchmarks/inference", "benchmarks/league")
  for path in (ROOT / folder).glob("*.py"))


def missing(source: str) -> list[str]:
  """Returns the attributes of the project's modules that a source names and that do not exist.

  Only the project's own modules are imported: those of peers may exclude each other.
  """
  tree = ast.parse(source)
  owners = {}
  for node in ast.walk(tree):
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("starleague"):
      owner = importlib.import_module(node.module)
      for name in node.names:
        value = getattr(owner, name.name, None) or importlib.import_module(
          f"{node.module}.{name.name}")
        if isinstance(value, types.ModuleType):
          owners[name.asname or name.name] = value
  return [
    f"line {node.lineno}: {owners[node.value.id].__name__}.{node.attr}" for node in ast.walk(tree)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    and node.value.id in owners and not hasattr(owners[node.value.id], node.attr)]


def test_a_missing_name_is_found():
  assert missing("from starleague import learner as l\nl.losses\nl.nothing()") == [
    "line 3: starleague.learner.nothing"]
  with pytest.raises(ModuleNotFoundError, match="starleague.learner.nothing"):
    missing("from starleague.learner import nothing")


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_names_exist(path):
  assert missing(path.read_text(encoding="utf-8")) == []
