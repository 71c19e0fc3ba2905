"""Who may import whom, and that no module is loaded twice."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = {  # the rooms that a room may import besides itself
  "agent": set(),
  "learner": {"agent"},
  "actor": {"agent"},
  "league": set(),
  "experiments": {"agent", "learner", "actor", "league"},
}
HEAVY = {"tensorflow", "reverb", "pysc2", "s2clientprotocol", "ray"}
HEAVY_ALLOWED = ("learner/replay.py", "actor/writer.py", "actor/parameters.py",
                 "actor/environments/sc2/", "experiments/")
FILES = sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def _imports(path):
  """(line, dotted module) of every import of a file, those inside functions too."""
  for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
    if isinstance(node, ast.Import):
      for alias in node.names:
        yield node.lineno, alias.name
    elif isinstance(node, ast.ImportFrom):
      module = "." * node.level + (node.module or "")
      for alias in node.names:
        yield node.lineno, f"{module}.{alias.name}"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_keep_to_the_rules(path):
  room = path.parts[0]
  allowed = ROOMS[room] | {room}
  for line, module in _imports(path):
    where = f"{path}:{line} imports {module}"
    top, *rest = module.split(".")
    assert not module.startswith("."), f"{where}: import absolutely, as starleague.{room}"
    assert top not in ROOMS, f"{where}: import it as starleague.{module}"
    if top == "starleague":
      assert rest and rest[0] in allowed, f"{where}: {room} may import {sorted(allowed)}"
    if top in HEAVY:
      assert str(path).startswith(HEAVY_ALLOWED), f"{where}: only {HEAVY_ALLOWED} may"


def test_rules_see_every_form_of_import(tmp_path):
  source = tmp_path / "a.py"
  source.write_text("import os.path, agent\nfrom starleague import learner as x\nfrom . import y\n"
                    "def f():\n  from starleague.actor.rewards import z\n  import reverb\n")
  assert sorted(_imports(source)) == [
    (1, "agent"), (1, "os.path"), (2, "starleague.learner"), (3, "..y"),
    (5, "starleague.actor.rewards.z"), (6, "reverb")]


@pytest.mark.slow
def test_light_rooms_load_no_module_twice_and_nothing_heavy():
  modules = [".".join(("starleague", *path.with_suffix("").parts)).removesuffix(".__init__")
             for path in FILES if path.parts[0] in ("agent", "league")
             or path.parts[:2] == ("learner", "losses")]
  assert len(modules) > 20
  code = f"""if True:
    import importlib, os, sys
    for name in {modules!r}:
      importlib.import_module(name)
    files = {{}}
    for name, module in list(sys.modules.items()):
      file = getattr(module, "__file__", None)
      if file and os.path.realpath(file).startswith({str(ROOT)!r} + os.sep) and ".venv" not in file:
        files.setdefault(os.path.realpath(file), []).append(name)
    print("twice", [names for names in files.values() if len(names) > 1])
    print("heavy", sorted(set({sorted(HEAVY)!r}) & set(sys.modules)))
    print("own", all(name.split(".")[0] == "starleague" for names in files.values()
                     for name in names), len(files) > 20)
  """
  done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True,
                        timeout=120, env={**os.environ, "JAX_PLATFORMS": "cpu"})
  assert done.returncode == 0, done.stderr
  assert done.stdout.splitlines() == ["twice []", "heavy []", "own True True"]
