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


def missing(module: types.ModuleType, tree: ast.AST) -> list[str]:
  """Returns the attributes of the project's modules that a source names and that do not exist."""
  found = []
  for node in ast.walk(tree):
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
      owner = vars(module).get(node.value.id)
      if (isinstance(owner, types.ModuleType) and owner.__name__.startswith("starleague")
          and not hasattr(owner, node.attr)):
        found.append(f"line {node.lineno}: {owner.__name__}.{node.attr}")
  return found


def test_a_missing_name_is_found():
  module = types.ModuleType("sample")
  module.learner = importlib.import_module("starleague.learner")
  assert missing(module, ast.parse("learner.losses\nlearner.nothing()")) == [
    "line 2: starleague.learner.nothing"]


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_names_exist(path):
  name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
  module = importlib.import_module(name)
  assert missing(module, ast.parse(path.read_text(encoding="utf-8"))) == []
