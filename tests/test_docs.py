"""Links, paths and sentences of the pages."""

import pathlib
import re

import pytest

from tests.test_imports import ROOMS

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CONTRIBUTING.md",
         *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")))
MOST_WORDS = 25
FOLDERS = (*ROOMS, "tests", "docs", "benchmarks", "examples", "starleague", "requirements")
LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")
# Ends of words that do not end a sentence.
ABBREVIATIONS = ("et al.", "e.g.", "i.e.", "vs.", "cf.", "etc.")


def without_code_blocks(text):
  """Drops fenced and indented code; code that is indented in a list item stays prose."""
  text = re.sub(r"^ *```.*?^ *```[^\n]*$", "", text, flags=re.MULTILINE | re.DOTALL)
  lines, in_list, previous = [], False, ""
  for line in text.splitlines():
    if re.match(r"\s*([-*]|\d+\.) ", line):
      in_list = True
    elif line and not line.startswith(" "):
      in_list = False
    code = line.startswith("    ") and not in_list and previous in ("", "code")
    lines.append("" if code else line)
    previous = "code" if code else line.strip()
  return "\n".join(lines)


def paragraphs(text):
  """Yields paragraphs and list items as one line each; tables, headings and comments are none."""
  found, in_item = [], False
  for line in [*without_code_blocks(text).splitlines(), ""]:
    line = line.strip()
    # A number interrupts no paragraph: a wrapped line may begin with one that ends a sentence.
    item = re.match(r"([-*]|\d+\.) +" if in_item or not found else r"[-*] +", line)
    if not line or item or line.startswith(("#", "|", "<!--")):
      if found:
        yield " ".join(found)
      found, in_item = [], bool(item)
      line = "" if not item else line[item.end():]
    if line:
      found.append(line)


def sentences(text):
  """Yields the sentences of a page; a piece of inline code is the one word CODE."""
  for paragraph in paragraphs(text):
    paragraph = re.sub(r"`[^`]+`", "CODE", paragraph)
    paragraph = LINK.sub(r"\1", paragraph).replace("**", "").replace("*", "")
    start = 0
    for end in re.finditer(r"[.!?][\")]*(?= +(?:[^\sa-z]|[a-z]+\d)| *$)", paragraph):
      sentence = paragraph[start:end.end()].strip()
      if sentence and not sentence.endswith(ABBREVIATIONS):
        yield sentence
        start = end.end()
    if paragraph[start:].strip():
      yield paragraph[start:].strip()


def words(sentence):
  """Counts the parts between spaces that have a letter or a digit."""
  return sum(1 for part in sentence.split() if re.search(r"\w", part))


@pytest.mark.parametrize("text, expected", [
  ("One two. Three four!", ["One two.", "Three four!"]),
  ("Over\ntwo lines.", ["Over two lines."]),
  ("After Vinyals et al. 2019 it is one.", ["After Vinyals et al. 2019 it is one."]),
  ("A game, e.g. Go, counts.", ["A game, e.g. Go, counts."]),
  ("Needs JAX 0.7.1 or later. Then go.", ["Needs JAX 0.7.1 or later.", "Then go."]),
  ("Read setup.py first.", ["Read setup.py first."]),
  ("Run `a b. C d` now.", ["Run CODE now."]),
  ("See [two words](docs/a.md) there.", ["See two words there."]),
  ("![A picture.](a.png)", ["A picture."]),
  ("(One here.) Another.", ["(One here.)", "Another."]),
  ("The *title* is **bold.** Next.", ["The title is bold.", "Next."]),
  ("Run it. s2protocol reads.", ["Run it.", "s2protocol reads."]),
  ("It is done. `x` follows.", ["It is done.", "CODE follows."]),
  ("- first item\n- second item\n  goes on", ["first item", "second item goes on"]),
  ("1. first\n2. second", ["first", "second"]),
  ("Seeds 1 and\n2. Next.", ["Seeds 1 and 2.", "Next."]),
  ("# Heading\n\nText.", ["Text."]),
  ("Text.\n\n    code. More code\n\nText.", ["Text.", "Text."]),
  ("```python\na. B\n```\nText.", ["Text."]),
  ("| a | b |\n|---|---|\n| c. D | e |\nText.", ["Text."]),
  ("The keys are:\n\n    x", ["The keys are:"]),
])
def test_sentences_are_split(text, expected):
  assert list(sentences(text)) == expected


@pytest.mark.parametrize("sentence, count", [
  ("One two three.", 3), ("A - b", 2), ("94% (90 to 97)", 4), ("two-space indent", 2), ("", 0),
])
def test_words_are_counted(sentence, count):
  assert words(sentence) == count


@pytest.mark.parametrize("page", PAGES)
def test_sentences_are_short(page):
  long = [(words(sentence), sentence) for sentence in sentences((ROOT / page).read_text())
          if words(sentence) > MOST_WORDS]
  assert long == []


def anchors(text):
  """Returns the anchors of a page's headings, as GitHub makes them."""
  found, seen = set(), {}
  for heading in re.findall(r"^#+ +(.+)$", without_code_blocks(text), re.MULTILINE):
    name = re.sub(r"[^\w\- ]", "", LINK.sub(r"\1", heading).lower()).replace(" ", "-")
    found.add(name if name not in seen else f"{name}-{seen[name]}")
    seen[name] = seen.get(name, 0) + 1
  return found


def broken_links(page, text):
  """Yields the relative links of a page that lead to no file or no heading."""
  for _, target in LINK.findall(without_code_blocks(text)):
    if re.match(r"[a-z]+:", target):
      continue
    name, _, anchor = target.partition("#")
    file = (ROOT / page).parent / name if name else ROOT / page
    if not file.exists():
      yield f"{page}: no file {target}"
    elif anchor and anchor not in anchors(text if not name else file.read_text()):
      yield f"{page}: no heading {target}"


@pytest.mark.parametrize("text, broken", [
  ("[a](docs/agent.md#trained-weights) [b](https://x.org/y) [c](LICENSE)", []),
  ("# A `b`, c\n[a](#a-b-c)", []),
  ("# A\n# A\n[a](#a-1)", []),
  ("# A\n[a](#b)", ["README.md: no heading #b"]),
  ("[a](docs/none.md)", ["README.md: no file docs/none.md"]),
  ("[a](docs/agent.md#none)", ["README.md: no heading docs/agent.md#none"]),
])
def test_broken_links_are_found(text, broken):
  assert list(broken_links("README.md", text)) == broken


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page):
  assert list(broken_links(page, (ROOT / page).read_text())) == []


def missing_paths(text):
  """Yields the paths in backticks, below a folder of the root, that do not exist."""
  for code in re.findall(r"`([^`\n]+)`", text):
    for word in code.split():
      path = word.split("::")[0].removeprefix("starleague/")
      known = path.endswith("/") or re.search(r"\.(py|md|csv|json|html|js|npz|txt|svg|png)$", path)
      if (known and path.split("/")[0] in FOLDERS and "/" in path
          and not re.search(r"[A-Z*]{3}|\*", path) and not (ROOT / path).exists()):
        yield path


@pytest.mark.parametrize("text, missing", [
  ("`agent/types.py` and `learner/losses/` and `runs/mini/z.npz`", []),
  ("`tests/test_docs.py::test_x`", []),
  ("`agent/data/PRESET.npz`", []),
  ("`agent/none.py` and `python x league/none/`", ["agent/none.py", "league/none/"]),
])
def test_missing_paths_are_found(text, missing):
  assert list(missing_paths(text)) == missing


@pytest.mark.parametrize("page", PAGES)
def test_paths_in_backticks_exist(page):
  assert list(missing_paths((ROOT / page).read_text())) == []


def test_the_companions_lines_are_counted():
  page = (ROOT / "docs/companions.md").read_text()

  def lines(path):
    return len(path.read_text().splitlines())

  table = page.partition("(`wc -l companions/*.py`)")[2].partition("\n\n| system |")[2]
  table = table.partition("\n\n")[0]
  found = re.findall(r"^\| `(\w+)` \| (\d+) \|", table, re.MULTILINE)
  assert len(found) == 10
  assert [(name, int(count)) for name, count in found] == [
    (name, lines(ROOT / f"companions/{name}.py")) for name, _ in found]
  for folder in ("tasks", "workers"):
    count = re.search(rf"; {folder}: ([\d,]+)", table)[1]
    assert int(count.replace(",", "")) == sum(
      map(lines, (ROOT / "companions" / folder).glob("*.py")))
