"""Players by name and the tier of their game."""

import jax
import pytest

from starleague.common.errors import UserError
from starleague.environments.skirmish.rules.config import DEFAULT_GAME_CONFIG, GAME_CONFIGS
from starleague.experiments.run import competitors


def test_agent_plays_with_the_runs_newest_weights(tmp_path, monkeypatch):
  """Checks the weights and the environment; the policy itself is not run."""
  run_dir = tmp_path / "mini"
  config = competitors.settings.complete({})
  competitors.settings.save(config, run_dir)
  monkeypatch.setattr(
    competitors.checkpoints, "load_params", lambda path, config: (path, config.name))
  game, (agent, script) = competitors.choose(("agent", "rusher"), run_dir=run_dir)
  assert game == DEFAULT_GAME_CONFIG
  assert agent.name == "agent mini" and agent.params == (run_dir / "checkpoints", "mini")
  assert script.name == "rusher"
  assert jax.tree.leaves(agent.memory)[0].shape
  with pytest.raises(UserError, match=f"--tier is large, but {run_dir} plays at mini"):
    competitors.choose(("agent", "rusher"), run_dir=run_dir, tier="large")


def test_tier_is_one_that_has_the_players():
  assert competitors.choose(("L7", "macro"))[0].tier == "default"
  assert competitors.choose(("rusher", "builder"))[0].tier == "mini"
  assert competitors.choose(("L7", "macro"), tier="large")[0] == GAME_CONFIGS["large"]
