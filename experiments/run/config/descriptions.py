"""Descriptions of config keys: the comments beside them in the files that define their values."""

import ast
import functools
import inspect
import io
import tokenize
from types import ModuleType

from starleague.experiments.configs import mini
from starleague.experiments.run.games import registry

# The function and the constant that hold the values: of `configs/mini.py`, and of a game's file.
_VALUES, _OPTIONS = "_from_imitation", "OPTIONS"


def described(source: str) -> dict[str, str]:
  """Returns the comment of each key of the dictionaries in a source, by key.

  A comment stands on the line of the key, or on the lines before it. Nested dictionaries give keys
  with dots; those that functions return have the prefix that the calls of these functions have.

  Args:
    source: Python that defines dictionaries of literals.
  """
  comments, alone = _comments(source)
  tree = ast.parse(source)
  returned = {node.name: statement.value for node in ast.walk(tree)
              if isinstance(node, ast.FunctionDef) for statement in node.body
              if isinstance(statement, ast.Return)}
  found: dict[str, str] = {}

  def visit(node: ast.expr | None, prefix: str) -> None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
      node = returned.get(node.func.id)
    elif isinstance(node, ast.Call) and node.args:
      node = node.args[0]  # of a ConfigDict
    if not isinstance(node, ast.Dict):
      return
    for key, value in zip(node.keys, node.values, strict=True):
      if isinstance(key, ast.Constant) and isinstance(key.value, str):
        path = f"{prefix}{key.value}"
        found[path] = comments.get(key.lineno, "") or _before(alone, key.lineno)
        visit(value, f"{path}.")

  visit(returned.get(_VALUES), "")
  for statement in tree.body:
    if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == _OPTIONS:
      visit(statement.value, "")
  return {key: text for key, text in found.items() if text}


def _comments(source: str) -> tuple[dict[int, str], dict[int, str]]:
  """Returns the comments behind code and those on lines of their own, by line."""
  behind: dict[int, str] = {}
  alone: dict[int, str] = {}
  for token in tokenize.generate_tokens(io.StringIO(source).readline):
    if token.type == tokenize.COMMENT:
      text = token.string.lstrip("# ")
      (alone if token.line.lstrip().startswith("#") else behind)[token.start[0]] = text
  return behind, alone


def _before(alone: dict[int, str], line: int) -> str:
  """Returns the comment lines right before a line, joined."""
  lines: list[str] = []
  while (line := line - 1) in alone:
    lines.insert(0, alone[line])
  return " ".join(lines)


@functools.cache
def descriptions() -> dict[str, str]:
  """Returns the description of each config key, dots between groups, with those of games."""
  found = described(inspect.getsource(mini))
  for game in registry.games().values():
    module: ModuleType | None = inspect.getmodule(game.make_parts)
    if game.options and module is not None:
      found |= {f"{game.name}.{key}": text
                for key, text in described(inspect.getsource(module)).items()}
  return found
