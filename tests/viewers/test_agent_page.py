"""The agent's page: counts and shapes of the code."""

import pathlib
import re

import pytest

from starleague.agent import config
from starleague.viewers import agent_page

ROOT = pathlib.Path(__file__).parents[2]


def test_parameter_counts_match_the_published_sizes():
  counts = agent_page.parameter_counts(config.full())
  for part in agent_page.PARTS[:-1]:
    assert counts[part.name] / 1e6 == pytest.approx(part.published, rel=0.015, abs=0.01), part.name
  # Beyond the published inputs the baselines read both players' executed statistics: 5 x 2 x 320
  # and 7 x 2 x 32 values through input layers 256 wide.
  executed = 256 * (5 * 2 * 320 + 7 * 2 * 32)
  published = agent_page.PARTS[-1].published
  assert (counts["baselines"] - executed) / 1e6 == pytest.approx(published, rel=0.03)


def test_diagram_shows_the_presets_shapes():
  text = "\n".join(agent_page.diagram(config.mini()))
  for shape in ("entities [64, 48]", "[7, 32, 32]", "units [8, 65]", "location [1024]",
                "scatter connection [64, 32]", "2 x [8, 8, 16]", "hidden and cell state [1, 64]"):
    assert shape in text
  arrows = re.findall(r"^  (\w+)", text, re.MULTILINE)
  assert arrows  # every line is an arrow


def test_update_replaces_only_the_generated_part():
  page = f"before\n{agent_page.BEGIN}\nold\n{agent_page.END}\nafter\n"
  updated = agent_page.update(page, "new")
  assert updated == page.replace("old", "new")
  message = "expected .*begin.* and then .*end.*, once each; found 0 and 0"
  with pytest.raises(ValueError, match=message):
    agent_page.update("no marks", "new")


def test_page_in_docs_is_up_to_date():
  page = (ROOT / "docs" / "agent.md").read_text()
  assert agent_page.update(page, agent_page.generated_part(config.full())) == page
