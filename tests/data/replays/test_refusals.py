"""The reasons of refusals: names, the documented list, those of a passing kind."""

import pathlib
import re

from starleague.data.replays import refusals

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "replays.md"


def test_a_refusal_names_its_reason_and_detail():
  refusal = refusals.Refusal(refusals.DAMAGED, "the header is cut off")
  assert (refusal.reason, refusal.detail, str(refusal)) == (
    "damaged", "the header is cut off", "the header is cut off")


def test_the_page_lists_every_reason():
  """In the order of REASONS; the passing ones, which are tried again, share a row."""
  table = PAGE.read_text().partition("| reason | meaning |")[2].partition("\n\n")[0]
  cells = [line.split("|")[1] for line in table.splitlines() if "`" in line]
  named = [re.findall("`([^`]+)`", cell) for cell in cells]
  assert [name for row in named for name in row] == list(refusals.REASONS)
  assert named[-1] == list(refusals.PASSING) and len(set(refusals.REASONS)) == 13
