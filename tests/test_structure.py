"""Sizes of files and functions, launch files, tests that mirror the rooms, the README's map."""

import ast
import collections
import pathlib
import re
import subprocess

import pytest

from tests.test_imports import FILES, ROOMS

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_LINES, MOST_FUNCTION_LINES, MOST_COLUMNS, MOST_LAUNCH_LINES = 400, 60, 100, 99
MOST_EXAMPLE_LINES = 200
MOST_MODULES = 20  # in a folder
CODE = sorted(FILES + [path.relative_to(ROOT).as_posix()
                       for folder in ("tests", "benchmarks", "examples")
                       for path in (ROOT / folder).rglob("*.py")] + ["setup.py"])
# Folders at the root that are no rooms; each is in the README's map too.
OTHER_FOLDERS = {"tests", "docs", "benchmarks", "examples", "starleague"}
HIDDEN_OR_GENERATED = {"build", "dist", "runs", "requirements"}
# Folders whose modules, and those of the folders inside, have a test file each: the test of
# ROOM/NAME.py is tests/ROOM/test_NAME.py. Launch files in experiments/ are wiring: runs test them.
MIRRORED = {
  "actor",
  "common",
  "companions",
  "agent",
  "data",
  "environments",
  "experiments/generate",
  "experiments/run",
  "league",
  "learner",
  "viewers",
}


def oversized(file, source):
  """Returns what a source exceeds, as texts."""
  lines = source.splitlines()
  if len(lines) > MOST_LINES:
    yield f"{file}: {len(lines)} lines, at most {MOST_LINES}"
  for number, line in enumerate(lines, 1):
    if len(line) > MOST_COLUMNS:
      yield f"{file}:{number}: {len(line)} columns, at most {MOST_COLUMNS}"
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
      length = node.end_lineno - node.lineno + 1
      if length > MOST_FUNCTION_LINES:
        yield f"{file}:{node.lineno}: {node.name} has {length} lines, at most {MOST_FUNCTION_LINES}"


@pytest.mark.parametrize("source, found", [
  ("x = 1\n" * 400, []),
  ("x = 1\n" * 401, ["a.py: 401 lines, at most 400"]),
  (f"x = '{'a' * 96}'\n", ["a.py:1: 102 columns, at most 100"]),
  ("def f():\n" + "  x = 1\n" * 59, []),
  ("def f():\n" + "  x = 1\n" * 60, ["a.py:1: f has 61 lines, at most 60"]),
  ("class C:\n  async def f():\n" + "    x = 1\n" * 60, ["a.py:2: f has 61 lines, at most 60"]),
])
def test_oversized_files_lines_and_functions_are_found(source, found):
  assert list(oversized("a.py", source)) == found


@pytest.mark.parametrize("file", CODE)
def test_files_functions_and_lines_are_short(file):
  assert list(oversized(file, (ROOT / file).read_text())) == []


@pytest.mark.parametrize("file", [file for file in FILES if re.fullmatch(
  r"experiments/(?!__init__)\w+\.py", file)])
def test_launch_files_are_thin(file):
  text = (ROOT / file).read_text()
  assert len(text.splitlines()) <= MOST_LAUNCH_LINES
  assert '__name__ == "__main__"' in text


@pytest.mark.parametrize("file", [file for file in CODE if file.startswith("examples/")])
def test_examples_are_short(file):
  assert len((ROOT / file).read_text().splitlines()) <= MOST_EXAMPLE_LINES


def test_no_folder_has_too_many_modules():
  """A reader guesses the file from the question: launch files aside, floors keep folders short."""
  counted = [*FILES, *(file for file in CODE if file.startswith("benchmarks/"))]
  folders = collections.Counter(str(pathlib.Path(file).parent) for file in counted
                                if not file.endswith("__init__.py"))
  assert folders.pop("experiments") > MOST_MODULES  # launch files
  assert {folder: count for folder, count in folders.items() if count > MOST_MODULES} == {}


def test_every_folder_of_tests_mirrors_a_room():
  root = ROOT / "tests"
  folders = {path.parent.relative_to(root) for path in root.rglob("test_*.py")}
  folders.discard(pathlib.Path("."))
  assert folders
  assert [str(folder) for folder in sorted(folders) if not (ROOT / folder).is_dir()] == []


@pytest.mark.parametrize("room", sorted(MIRRORED))
def test_every_module_has_a_test_of_its_name(room):
  modules = [path.relative_to(ROOT) for path in (ROOT / room).rglob("*.py")
             if path.name not in ("__init__.py", "__main__.py")]
  assert modules
  tests = {module: pathlib.Path("tests") / module.parent / f"test_{module.name}"
           for module in modules}
  assert [f"{module} has no {test}" for module, test in sorted(tests.items())
          if not (ROOT / test).is_file()] == []


def test_the_readme_maps_every_folder():
  tracked = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                           cwd=ROOT, capture_output=True, text=True).stdout.split()
  folders = {name.split("/")[0] for name in tracked if "/" in name}
  if not tracked:  # an unpacked archive has no git
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
  folders = {name for name in folders if not name.startswith((".", "_"))}
  folders -= HIDDEN_OR_GENERATED
  readme = (ROOT / "README.md").read_text()
  mapped = set(re.findall(r"^\| `(\w+)/` \|", readme, re.MULTILINE))
  assert mapped == folders == set(ROOMS) | OTHER_FOLDERS
  assert len(readme.splitlines()) <= 100
