"""The order buttons."""

import pytest

from starleague.viewers.play import commands as play_commands
from tests.viewers.games import DEFAULT_RULES, RULES


@pytest.mark.parametrize("rules", [RULES, DEFAULT_RULES], ids=["mini", "default"])
def test_hot_keys_of_each_type_differ(rules):
  commands = play_commands.commands(rules)
  for kind, name in enumerate(rules.types.names):
    keys = [command.key for command in commands if kind in command.capable and command.key]
    assert len(keys) == len(set(keys)), name
    assert not set(keys) & set("qwz"), name
  functions = [i for command in commands for i in command.functions.values()]
  assert sorted(functions) == list(range(1, len(rules.functions.names)))
  assert [command.label for command in commands if not command.key] == ["Smart"]


def test_buttons_show_prices():
  found = {command["label"]: command for command in play_commands.page_commands(DEFAULT_RULES)}
  marauder, refinery = found["Train Marauder"], found["Build Refinery"]
  assert [marauder[name] for name in ("minerals", "vespene", "food")] == [100, 25, 2]
  assert refinery["building"] and refinery["gas"] and not marauder["building"]
