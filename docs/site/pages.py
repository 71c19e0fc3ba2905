"""Pages of the site that are made from other files: the root's pages, notebooks, API reference."""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Page of the site -> file of the root.
ROOT_PAGES = {"index.md": "README.md", "changes.md": "CHANGELOG.md",
              "contributing.md": "CONTRIBUTING.md"}
# Page of the API reference -> packages whose public names it has.
PACKAGES = {
  "agent": ("agent",), "losses": ("learner.losses",), "league": ("league",),
  "data": ("data", "data.games"),
  "environments": ("environments", "environments.skirmish")}
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)")
_ELSEWHERE = re.compile(
  r"<(?:script|img|iframe)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>"
  r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon))"
  r"[^>]*\bhref=[\"']?(?:https?:)?//[^>]*>")


def make_pages() -> dict[str, str]:
  """Returns the pages that are made, by their paths in the site."""
  pages = {page: root_page((ROOT / name).read_text()) for page, name in ROOT_PAGES.items()}
  pages |= {f"api/{page}.md": reference(packages) for page, packages in PACKAGES.items()}
  return pages | {f"notebooks/{path.stem}.md": notebook(path.read_text())
                  for path in sorted((ROOT / "docs" / "notebooks").glob("*.py"))}


def loaded_from_elsewhere(page: str) -> str | None:
  """Returns the first element of an HTML page that loads something from another server."""
  found = _ELSEWHERE.search(page)
  return found and found[0]


def root_page(text: str) -> str:
  """Returns a page of the root with links as they are within docs/."""
  pages = {name: page for page, name in ROOT_PAGES.items()}

  def moved(link: re.Match[str]) -> str:
    target = link[2]
    if re.match(r"[a-z]+:", target):
      return link[0]
    if target in pages:
      return link[1] + pages[target]
    if target.startswith("docs/notebooks/"):
      target = f"{target.removesuffix('.py')}.md"
    if target.startswith("docs/"):
      return link[1] + target.removeprefix("docs/")
    return link[0] if (ROOT / "docs" / target).exists() else f"{link[1]}{_other(target)}"

  return _LINK.sub(moved, text)


def _other(target: str) -> str:
  """Returns the address of a file that is no page of the site."""
  source = re.search(r'^REPOSITORY = "(.+)"$', (ROOT / "setup.py").read_text(), re.MULTILINE)
  assert source is not None
  return f"{source[1]}/blob/main/{target}"


def public_names(package: str) -> list[str]:
  """Returns `__all__` of a package, without importing it."""
  tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())
  for node in tree.body:
    if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [
        "__all__"]:
      return sorted(ast.literal_eval(node.value))
  raise ValueError(f"{package} has no __all__")


def reference(packages: tuple[str, ...]) -> str:
  """Returns the page of some packages: their own docstrings, then each public name."""
  parts = []
  for package in packages:
    name = f"starleague.{package}"
    parts += [f"# `{name}`" if not parts else f"## `{name}`",
              f"::: {name}\n    options:\n      members: false\n      show_root_heading: false\n"
              "      show_root_toc_entry: false"]
    parts += [f"::: {name}.{each}\n    options:\n      heading_level: {3 - (len(packages) == 1)}"
              for each in public_names(package)]
  return "\n\n".join(parts) + "\n"


def notebook(source: str) -> str:
  """Returns a notebook as a page; its cells are in the percent format of Jupytext."""
  parts = []
  for cell in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
    kind, _, body = cell.partition("\n")
    if kind.strip() == "[markdown]":
      parts.append("\n".join(line.removeprefix("#").removeprefix(" ")
                             for line in body.strip().splitlines()))
    elif body.strip():
      parts.append(f"```python\n{body.strip()}\n```")
  return "\n\n".join(parts) + "\n"
