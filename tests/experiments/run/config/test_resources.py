"""Resources that a process needs of its node, as text."""

import pytest

from starleague.experiments.run.config import resources, settings


@pytest.mark.parametrize("text, expected", [
  ("", {}), ("CPU:1", {"CPU": 1.0}), ("CPU:0.5,TPU-v4-8-head:1", {"CPU": 0.5, "TPU-v4-8-head": 1}),
  ("a:b:2", {"a:b": 2.0})])
def test_resources(text, expected):
  assert resources.parse(text) == expected


@pytest.mark.parametrize("text", ["CPU", "CPU:", ":1", "CPU:x", "CPU:0", "CPU:-1", "CPU:inf",
                                  "CPU:nan", "CPU:1,CPU:2"])
def test_invalid_resources(text):
  with pytest.raises(resources.ResourcesError, match=f"as CPU:1 .*found '{text}'"):
    resources.parse(text)


@pytest.mark.parametrize("key, value, message", [
  ("cluster.actor", "CPU", "'cluster.actor': expected NAME:NUMBER.*found 'CPU'"),
  ("cluster.learners", "all", "'cluster.learners' must be one of one, each, found 'all'"),
  ("cluster.learner_hosts", 0, "'cluster.learner_hosts' must be in")])
def test_a_config_with_invalid_places(key, value, message):
  with pytest.raises(settings.SettingsError, match=message):
    settings.complete({}, {key: value})
