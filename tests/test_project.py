"""The project as it is installed: ranges and lock agree, links hold, the wheel is whole."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse
import zipfile

import pytest
import setuptools
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import starleague

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROOMS = ("actor", "agent", "common", "companions", "data", "environments", "experiments", "league",
         "learner", "viewers")


@pytest.fixture(scope="module")
def distribution():
  before = os.getcwd()
  os.chdir(ROOT)
  try:
    return setuptools.distutils.core.run_setup("setup.py", stop_after="init")
  finally:
    os.chdir(before)


def _pins(path):
  """Name -> version of the lines that pin one."""
  lines = [line.split("#")[0].split(";")[0].strip() for line in path.read_text().splitlines()]
  return {canonicalize_name(name): version for name, _, version in
          (line.partition("==") for line in lines if "==" in line)}


@pytest.fixture(scope="module")
def lock():
  return _pins(ROOT / "requirements.txt")


def test_lock_pins_everything_once(lock):
  lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines()
           if not line.startswith("#")]
  assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in lines)
  assert len(lock) == len(lines) > 50


def test_lock_was_compiled_from_its_inputs(lock):
  assert (ROOT / "requirements.txt").read_text().startswith(
    (ROOT / "requirements" / "header.txt").read_text())
  inputs = ROOT / "requirements" / "requirements.in"
  wanted = _pins(inputs) | _pins(ROOT / "requirements" / "override.txt")
  assert len(wanted) > 10 and wanted.items() <= lock.items()
  names = {canonicalize_name(Requirement(line).name) for line in inputs.read_text().splitlines()}
  assert names <= lock.keys()


@pytest.mark.parametrize("extra", ["core", "data", "sc2", "companions", "adapters",
                                   "gif", "dashboard", "launch", "test", "dev"])
def test_ranges_allow_what_the_lock_pins(distribution, lock, extra):
  wanted = distribution.install_requires if extra == "core" else distribution.extras_require[extra]
  assert wanted
  for text in wanted:
    requirement = Requirement(text)
    pin = lock[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pin), (text, pin)


def test_agent_and_losses_need_no_tensorflow(distribution):
  core = {Requirement(text).name for text in distribution.install_requires}
  assert not core & {"tensorflow", "tensorflow-cpu", "dm-reverb", "pysc2", "ray"}
  jax = next(Requirement(text) for text in distribution.install_requires if text.startswith("jax"))
  assert [jax.specifier.contains(version) for version in ("0.7.0", "0.7.1", "0.12.0.1", "0.13")
          ] == [False, True, True, False]


def test_the_version_is_the_packages(distribution):
  assert distribution.get_version() == starleague.__version__
  assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", starleague.__version__)
  changes = (ROOT / "CHANGELOG.md").read_text()
  released = re.search(r"^## \[(\d+\.\d+\.\d+)\]", changes, re.MULTILINE)
  if ".dev" not in starleague.__version__:
    assert released and released[1] == starleague.__version__


def test_links_of_the_published_description_lead_to_the_repository(distribution):
  base = distribution.get_url()
  targets = re.findall(r"\]\(([^)\s]+)\)", distribution.get_long_description())
  assert f"{base}/blob/main/docs/results.md" in targets
  assert f"{base}/raw/main/docs/images/report.png" in targets
  assert [target for target in targets if not target.startswith(("https://", "#"))] == []
  assert {urllib.parse.urlsplit(target).netloc for target in targets} == {"github.com"}
  assert distribution.metadata.project_urls.keys() == {
    "Documentation", "Changes", "Source", "Issues"}
  assert all(url.startswith(base) for url in distribution.metadata.project_urls.values())
  citation = (ROOT / "CITATION.cff").read_text()
  assert citation.startswith("cff-version: 1.2.0\n") and f"\nrepository-code: {base}\n" in citation


def test_the_container_and_the_workflow_call_targets_of_make():
  """They hold no commands of their own that could differ from those of a checkout."""
  listed = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
  workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
  steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"]
           if "run" in step]
  called = [re.fullmatch(r"make ([a-z-]+)( [A-Z_]+=\S+)*", step) for step in steps]
  assert all(called) and {call[1] for call in called} <= listed
  assert {"lint", "test-fast", "test-all", "test-newest", "docs"} <= {call[1] for call in called}
  versions = workflow["jobs"]["portable"]["strategy"]["matrix"]["python"]
  assert versions == ["3.11", "3.12", "3.13"]
  container = (ROOT / "Dockerfile").read_text()
  assert re.search(r"^RUN make setup$", container, re.MULTILINE)
  assert 'ENTRYPOINT ["make"]\nCMD ["train"]' in container


def test_import_name_is_made_of_relative_links_to_the_rooms():
  entries = {entry.name: entry for entry in (ROOT / "starleague").iterdir()}
  assert {name for name, entry in entries.items() if entry.is_symlink()} == set(ROOMS), (
    "this checkout has lost its links: git config core.symlinks true, then check out again")
  for room in ROOMS:
    assert os.readlink(entries[room]) == f"../{room}"
  assert set(entries) - set(ROOMS) - {"__pycache__"} == {"__init__.py", "py.typed"}


def test_every_folder_of_code_is_a_package(distribution):
  folders = {path.parent.relative_to(ROOT)
             for room in ROOMS for path in (ROOT / room).rglob("*.py")}
  assert set(distribution.packages) == {
    "starleague", *("starleague." + ".".join(folder.parts) for folder in folders)}


def test_make_sets_up_before_it_runs():
  def commands(*arguments):
    return subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True,
                          check=True, timeout=60).stdout

  train = commands("--assume-new=requirements.txt", "train", "ARGS=--seconds 5")
  install = ("pip install --quiet --disable-pip-version-check --no-deps --no-compile -r "
             "requirements.txt -e .")
  assert train.index(install) < train.index(
    ".venv/bin/python -m starleague.experiments.train --seconds 5")
  test = commands("--assume-new=setup.py", "test")
  assert test.index(install) < test.index(".venv/bin/python -m pytest")
  assert re.search(
    r"\.venv-newest/bin/python -m pytest .* tests/agent tests/learner/losses "
    r"tests/test_portable\.py", commands("--assume-new=setup.py", "test-newest"))


def _newest(*settings):
  """Returns the Python that `make test-newest` would use."""
  done = subprocess.run(
    ["make", "-n", "--assume-new=setup.py", "test-newest", *settings], cwd=ROOT, text=True,
    capture_output=True, check=True, timeout=60, env={**os.environ, "HOME": "/nowhere"})
  return re.search(r'python="([^"]+)"; ', done.stdout)[1]


def test_the_newest_python_that_starts_is_used(tmp_path, monkeypatch):
  """A link of pyenv to a version that is not chosen is on the path, and fails."""
  def program(name, status):
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n[ {status} = 0 ] && echo {path}\nexit {status}\n")
    path.chmod(0o755)
    return str(path)

  monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
  program("python3.13", 127), program("python3.12", 1)
  assert _newest(f"PYTHON={sys.executable}") == sys.executable
  later = program("python3.12", 0)
  assert _newest() == later
  newest = program("python3.13", 0)
  assert _newest() == newest


def test_make_alone_lists_the_targets():
  done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
  listed = re.findall(r"^  make (\S+) +\S", done.stdout, re.MULTILINE)
  assert {"train", "test", "lint", "lock", "clean"} <= set(listed)


def test_make_refuses_another_python(tmp_path):
  """Before it installs anything, and tells how to name the right one."""
  other = tmp_path / "python3.9"
  other.write_text(f"#!/bin/sh\nexec {sys.executable} -c \"import sys; sys.version_info = (3, 9)\n"
                   f"exec(sys.argv[1])\" \"$2\"\n")
  other.chmod(0o755)
  done = subprocess.run(
    ["make", "setup", f"PYTHON={other}", f"VENV={tmp_path}/venv"], cwd=ROOT, capture_output=True,
    text=True, timeout=60)
  assert done.returncode != 0
  expected = f"Starleague needs CPython 3.11 (Reverb has no later wheels); {other} is 3.9"
  assert expected in done.stderr
  assert not (tmp_path / "venv").exists()


def _sources():
  """What a wheel must hold of the rooms, as it is named there."""
  return {f"starleague/{path.relative_to(ROOT)}" for room in ROOMS
          for path in (ROOT / room).rglob("*")
          if path.is_file() and "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
  """A wheel built from the source distribution of a copy of the checkout."""
  folder = tmp_path_factory.mktemp("wheel")
  copy = folder / "checkout"
  shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(
    "runs", "build", "dist", "*.egg-info", "__pycache__", ".git", ".venv*", ".*_cache",
    ".hypothesis"))
  build = ("from setuptools import build_meta; import sys; "
           "print(getattr(build_meta, 'build_' + sys.argv[1])(sys.argv[2]))")

  def run(kind, source):
    done = subprocess.run([sys.executable, "-c", build, kind, str(folder)], cwd=source,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]

  shutil.unpack_archive(run("sdist", copy), folder, filter="data")
  source, = (path for path in folder.glob("starleague-*") if path.is_dir())
  # The targets of the Makefile work there too.
  expected = {path.relative_to(ROOT) for name in ("docs", "tests", "benchmarks", "examples")
              for path in (ROOT / name).rglob("*")
              if path.is_file() and path.parent.name != "__pycache__"}
  expected |= {pathlib.Path(name) for name in ("Makefile", "mkdocs.yml", ".ci/run")}
  assert expected <= {path.relative_to(source) for path in source.rglob("*")}
  return run("wheel", source)


@pytest.mark.slow
def test_wheel_holds_all_code_and_data_and_nothing_else(wheel):
  with zipfile.ZipFile(wheel) as archive:
    names = {name for name in archive.namelist() if ".dist-info/" not in name}
    metadata = next(name for name in archive.namelist() if name.endswith("/METADATA"))
    text = archive.read(metadata).decode()
  assert names == _sources() | {"starleague/__init__.py", "starleague/py.typed"}
  assert "starleague/agent/data/functions.csv" in names
  assert "\nName: starleague\n" in text and "\nLicense-Expression: Apache-2.0\n" in text
  assert "\nRequires-Python: >=3.11\n" in text
  assert "\nClassifier: Programming Language :: Python :: 3.13\n" in text
  assert "\nProject-URL: Changes, https://" in text


@pytest.mark.slow
def test_wheel_works_where_it_is_installed(wheel, tmp_path):
  target = tmp_path / "site"
  subprocess.run(
    [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
     "--no-index", "--no-compile", "--target", str(target), str(wheel)], check=True, timeout=120)
  code = """if True:
    import starleague
    import starleague.agent as agent
    import starleague.agent.vocabulary as vocabulary
    from starleague.viewers.report import page
    print(agent.__file__, starleague.__version__)
    print(len(vocabulary.FUNCTIONS.names), vocabulary.FUNCTIONS.names[0])
    print("No figures are recorded yet" in page.render_page("run", [], {}))
  """
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120,
    env={**os.environ, "PYTHONPATH": str(target), "JAX_PLATFORMS": "cpu"})
  assert done.returncode == 0, done.stderr
  assert done.stdout.splitlines() == [
    f"{target / 'starleague' / 'agent' / '__init__.py'} {starleague.__version__}", "327 no_op",
    "True"]
