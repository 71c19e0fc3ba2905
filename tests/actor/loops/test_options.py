"""Options of actors: each field has a reader and a description."""

import ast
import dataclasses
import pathlib

import pytest

from starleague.actor import loops
from starleague.actor.loops.options import ActorOptions
from tests.actor.loops.options import options, process

FIELDS = [field.name for field in dataclasses.fields(ActorOptions)]
ROOT = pathlib.Path(loops.__file__).resolve().parents[2]


def read_fields(source):
  """Returns the attributes that a source reads of `options` or `self._options`."""
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
      owner = getattr(node.value, "attr", getattr(node.value, "id", ""))
      if owner in ("options", "_options"):
        yield node.attr


@pytest.mark.parametrize("source, found", [
  ("f(options.seed)", ["seed"]), ("self._options.games + 1", ["games"]),
  ("options.seed = 1", []), ("config.seed", []), ("options", [])])
def test_reads_are_found(source, found):
  assert list(read_fields(source)) == found


def test_every_option_is_read():
  files = [*(ROOT / "actor/loops").glob("*.py"), *(ROOT / "experiments").rglob("*.py")]
  read = {name for file in files for name in read_fields(file.read_text())}
  assert set(FIELDS) <= read


@pytest.mark.parametrize("name", FIELDS)
def test_every_option_is_described(name):
  assert f"\n    {name}: " in ActorOptions.__doc__


def test_options_do_not_change():
  with pytest.raises(dataclasses.FrozenInstanceError):
    options().seed = 1


def test_options_come_from_their_config_keys(tmp_path):
  found = options(actor__games=64, league__games=2, data__timeout_s=7.0, seed=3)
  assert (found.games, found.league_games, found.timeout_s, found.seed) == (64, 2, 7.0, 3)
  assert process(tmp_path).run_dir == tmp_path
