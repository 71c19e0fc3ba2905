"""Provenance names the commit and the machine; both are there without git too."""

import os
import subprocess

from starleague.common import provenance


def git(folder, *words):
  """Runs git without the user's settings; returns its output."""
  settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
  own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
  return subprocess.run(
    ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True,
    capture_output=True, text=True, env=own | settings).stdout


def test_the_commit_is_that_of_the_folder(tmp_path, monkeypatch):
  assert provenance.commit(tmp_path) is None
  git(tmp_path, "init", "-q")
  git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
  head = git(tmp_path, "rev-parse", "HEAD")
  assert provenance.commit(tmp_path) == head[:12]
  monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))  # as in a hook of another repository
  assert provenance.commit(tmp_path) == head[:12]
  (tmp_path / "site-packages").mkdir()
  assert provenance.commit(tmp_path / "site-packages") is None  # that of another project


def test_without_git_there_is_no_commit(tmp_path, monkeypatch):
  monkeypatch.setenv("PATH", str(tmp_path))
  assert provenance.commit(tmp_path) is None


def test_the_machine_is_its_processor_and_cores(tmp_path):
  cores = len(os.sched_getaffinity(0))
  cpus = tmp_path / "cpuinfo"
  cpus.write_text("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nmodel name\t: B\n")
  assert provenance.machine(cpus) == f"A CPU @ 2 GHz, {cores} cores"
  assert provenance.machine(tmp_path / "none").endswith(f", {cores} cores")
