"""Pages that the documentation's site makes: links, API reference, notebooks, nothing from afar."""

import importlib
import importlib.util
import pathlib
import re
import runpy
import subprocess
import sys

import pytest
import yaml

from starleague.experiments.run.datasets import demonstrations
from tests.experiments import runs
from tests.test_docs import LINK

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(path.stem for path in (ROOT / "docs" / "notebooks").glob("*.py"))


@pytest.fixture(scope="module")
def pages():
  spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "site" / "pages.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _entries(nav):
  for entry in nav:
    if isinstance(entry, str):
      yield entry
    else:
      for value in entry.values():
        yield from [value] if isinstance(value, str) else _entries(value)


def test_the_navigation_has_every_page_once(pages):
  listed = list(_entries(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
  written = {path.name for path in (ROOT / "docs").glob("*.md")}
  assert sorted(listed) == sorted(written | set(pages.make_pages()))


@pytest.mark.parametrize("link, moved", [
  ("[a](docs/agent.md#trained-weights)", "[a](agent.md#trained-weights)"),
  ("![a](docs/images/report.png)", "![a](images/report.png)"),
  ("[a](CHANGELOG.md)", "[a](changes.md)"),
  ("[a](docs/notebooks/losses.py)", "[a](notebooks/losses.md)"),
  ("[a](https://x.org/docs/y)", "[a](https://x.org/docs/y)"), ("[a](#b)", "[a](#b)"),
  ("[a](LICENSE)", "[a](https://github.com/starleague/starleague/blob/main/LICENSE)")])
def test_links_of_the_roots_pages_are_moved(pages, link, moved):
  assert pages.root_page(f"See {link}.") == f"See {moved}."


def test_made_pages_link_to_pages_of_the_site(pages):
  made = pages.make_pages()
  for page, text in made.items():
    for _, target in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
      name = target.partition("#")[0]
      if name and not re.match(r"[a-z]+:", name):
        path = (ROOT / "docs" / page).parent / name
        local = path.resolve().relative_to(ROOT / "docs").as_posix()
        assert local in made or path.resolve().exists(), (page, target)


def test_the_reference_has_every_public_name(pages):
  for page, packages in pages.PACKAGES.items():
    text = pages.make_pages()[f"api/{page}.md"]
    for package in packages:
      names = importlib.import_module(f"starleague.{package}").__all__
      assert pages.public_names(package) == sorted(names) and names
      assert [name for name in names if f"\n::: starleague.{package}.{name}\n" not in text] == []
  assert set(sum(pages.PACKAGES.values(), ())) >= {
    "agent", "learner.losses", "league", "data", "environments"}


@pytest.mark.parametrize("html, found", [
  ('<script src="assets/a.js"></script><a href="https://x.org">', None),
  ('<script src="https://x.org/a.js">', '<script src="https://x.org/a.js">'),
  ("<img alt=a src=//x.org/a.png>", "<img alt=a src=//x.org/a.png>"),
  ('<link href="https://x.org/a.css" rel="stylesheet">',
   '<link href="https://x.org/a.css" rel="stylesheet">'),
  ('<link rel="canonical" href="https://x.org/">', None)])
def test_what_a_page_loads_from_elsewhere_is_found(pages, html, found):
  assert pages.loaded_from_elsewhere(html) == found


def test_a_notebook_becomes_a_page(pages):
  source = "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1\n\n\n# %%\nprint(x)\n"
  assert pages.notebook(source) == (
    "# Title\n\nText.\n\n```python\nx = 1\n```\n\n```python\nprint(x)\n```\n")


def test_notebooks_are_those_of_the_make_target():
  recipe = re.search(r"for notebook in ([a-z ]+);", (ROOT / "Makefile").read_text())[1]
  assert sorted(recipe.split()) == NOTEBOOKS == ["dataset", "league", "losses", "weights"]


@pytest.mark.parametrize(("notebook", "package", "line"), [
  ("dataset", "pyarrow", "error: this notebook needs pyarrow, which is not installed: "
   "pip install 'starleague[games]'"),
  ("league", "reverb", "error: this notebook needs Reverb, which is not installed: make setup, or "
   "pip install --no-deps -r requirements.txt on Python 3.11")])
def test_a_notebook_without_its_extra_ends_with_one_line(notebook, package, line, monkeypatch):
  """Before it plays or trains."""
  def work(*arguments, **options):
    raise AssertionError("the notebook has begun its work")

  monkeypatch.setitem(sys.modules, package, None)
  monkeypatch.setattr(demonstrations, "record", work)
  monkeypatch.setattr(subprocess, "run", work)
  with pytest.raises(SystemExit) as end:
    runpy.run_path(str(ROOT / "docs" / "notebooks" / f"{notebook}.py"))
  assert end.value.code == line


@pytest.mark.slow
def test_the_notebook_of_losses_runs(tmp_path):
  """It checks itself. The others compile games and runs for minutes: `make notebooks` runs them."""
  path = ROOT / "docs" / "notebooks" / "losses.py"
  done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True,
                        env={**runs.variables(), "PYTHONPATH": str(ROOT)}, timeout=600)
  assert done.returncode == 0, done.stderr
  assert "of the last 1.000" in done.stdout
