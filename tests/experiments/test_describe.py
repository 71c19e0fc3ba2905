"""The generated part of an agent's page; unknown presets."""

from starleague.experiments import describe, record_replays
from starleague.viewers import agent_page
from tests.experiments.launch import launch, refusal


def test_generated_part_is_updated(tmp_path):
  page = tmp_path / "agent.md"
  page.write_text(f"before\n{agent_page.BEGIN}\nold\n{agent_page.END}\nafter\n")
  assert launch(describe, "--preset", "mini", "--write", page) is None
  text = page.read_text()
  assert text.startswith(f"before\n{agent_page.BEGIN}\n### One step of `mini`\n")
  assert text.endswith(f"{agent_page.END}\nafter\n") and "old" not in text


def test_an_unknown_preset_is_refused(tmp_path):
  assert launch(describe, "--preset=").startswith("error: --preset: unknown agent preset ''")
  words = (tmp_path, "--dataset", tmp_path / "set", "--preset=huge")
  assert "--preset: unknown agent preset 'huge'" in refusal(record_replays, *words)
