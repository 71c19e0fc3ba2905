import pathlib
import re

import pytest

from starleague.agent import config
from starleague.viewers import agent_page

ROOT = pathlib.Path(__file__).parents[2]


def test_published_sizes_come_to_the_tally():
  counts = agent_page.parameter_counts(config.full())
  for part in agent_page.PARTS[:-1]:
    assert counts[part.name] / 1e6 == pytest.approx(part.tally, rel=0.015, abs=0.01), part.name
  # Beyond the published inputs the baselines read what both players have executed: two build orders
  # of 320 and 2 x 32 for each of their 7 parts of statistics, through 256 wide input layers.
  executed = 256 * (5 * 2 * 320 + 7 * 2 * 32)
  assert (counts["baselines"] - executed) / 1e6 == pytest.approx(agent_page.PARTS[-1].tally, rel=0.03)


def test_every_shape_of_the_diagram_is_the_presets():
  text = "\n".join(agent_page.diagram(config.mini()))
  for shape in ("entities [64, 48]", "[7, 32, 32]", "units [8, 65]", "location [1024]",
                "drawn on the map [64, 32]", "2 x [8, 8, 16]", "state [1, 64]"):
    assert shape in text
  arrows = re.findall(r"^  (\w+)", text, re.MULTILINE)
  assert arrows  # every line is an arrow


def test_renewing_replaces_the_generated_part_only():
  page = f"before\n{agent_page.BEGIN}\nold\n{agent_page.END}\nafter\n"
  renewed = agent_page.renew(page, "new")
  assert renewed == page.replace("old", "new")
  with pytest.raises(ValueError, match="expected .*begin.* and then .*end.* once each"):
    agent_page.renew("no marks", "new")


def test_the_page_is_up_to_date():
  page = (ROOT / "docs" / "agent.md").read_text()
  assert agent_page.renew(page, agent_page.page_part(config.full())) == page
