"""Players, and the rules of their snapshots and resets."""

import pytest

from starleague.league import players
from starleague.league.players import Player


@pytest.mark.parametrize("kwargs, message", [
  ({"name": "", "kind": "main"}, "needs a name"),
  ({"name": "a", "kind": "captain"}, "a: kind is 'captain'"),
  ({"name": "a", "kind": "historical"}, "a is historical: it needs a parent"),
  ({"name": "a", "kind": "historical", "parent": "b", "parent_kind": "scripted"}, "needs a parent"),
])
def test_invalid_players_are_refused(kwargs, message):
  with pytest.raises(ValueError, match=message):
    Player(**kwargs)


@pytest.mark.parametrize("kind", players.LEARNING_KINDS)
@pytest.mark.parametrize("steps, rates, due", [
  (1.99e9, [.99], False),  # too early, at any score
  (2e9, [.71, .9], True),
  (2e9, [.7, .9], False),  # 0.7 is not above 0.7
  (4e9, [.1], False),
  (4.1e9, [.1], True),
  (3e9, [], False),  # no reference set
  (4.1e9, [], True),
])
def test_the_pseudocode_snapshot_rule(kind, steps, rates, due):
  rule = getattr(players.pseudocode_rules(), kind)
  assert players.snapshot_due(rule, steps, rates) is due


@pytest.mark.parametrize("kind, steps, rates, due", [
  ("main", 1.9e9, [.99], False),
  ("main", 2.1e9, [.1], True),
  ("main_exploiter", 1, [.71], True),
  ("main_exploiter", 3.9e9, [.5], False),
  ("main_exploiter", 4.1e9, [.5], True),
  ("league_exploiter", 1, [.71], True),
  ("league_exploiter", 1.9e9, [.5], False),
  ("league_exploiter", 2.1e9, [.5], True),
])
def test_the_text_snapshot_rule(kind, steps, rates, due):
  assert players.snapshot_due(getattr(players.methods_rules(), kind), steps, rates) is due


@pytest.mark.parametrize("rules", [players.pseudocode_rules(), players.methods_rules()])
def test_reset_probabilities_by_kind(rules):
  assert not players.resets(rules.main, 0.0)
  assert players.resets(rules.main_exploiter, 0.999)
  assert players.resets(rules.league_exploiter, 0.249)
  assert not players.resets(rules.league_exploiter, 0.25)


def test_frozen_main_agents_have_a_snapshot_and_no_learner():
  league = players.initial_players(["zerg"], 0, 0, 2, frozen_main_agents=2)
  assert [player.name for player in league if player.learns] == [
    "zerg-league_exploiter-0", "zerg-league_exploiter-1"]
  frozen = [player for player in league if not player.learns]
  assert [player.name for player in frozen] == ["zerg-main-0-0000", "zerg-main-1-0000"]
  assert {(player.race, player.kind, player.parent_kind) for player in frozen} == {
    ("zerg", players.HISTORICAL, players.MAIN)}
  # Live main agents have the first numbers: all names differ.
  names = [player.name for player in players.initial_players(["zerg"], 1, 1, 2, 1)]
  assert "zerg-main-1-0000" in names and len({*names}) == len(names) == 6


def test_the_league_starts_with_twelve_learners_and_three_snapshots():
  league = players.initial_players()
  assert sum(player.learns for player in league) == 12
  copies = [player for player in league if player.kind == players.HISTORICAL]
  assert [player.name for player in copies] == [f"{race}-main-0-0000"
                                                for race in ("protoss", "zerg", "terran")]
  assert [player.parent for player in copies] == [f"{race}-main-0"
                                                  for race in ("protoss", "zerg", "terran")]
  assert len({player.name for player in league}) == 15
  by_name = {player.name: player for player in league}
  for kind, number in (("main", 3), ("main_exploiter", 3), ("league_exploiter", 6)):
    assert sum(player.kind == kind for player in league) == number

  reference = players.reference_set(by_name["zerg-main_exploiter-0"], league)
  assert [player.name for player in reference] == ["protoss-main-0", "zerg-main-0", "terran-main-0"]
  for name in ("zerg-main-0", "zerg-league_exploiter-1"):
    assert players.reference_set(by_name[name], league) == copies


def test_a_snapshot_is_frozen():
  main = Player("m", "main", "zerg")
  copy = players.snapshot(main, 7, 123)
  assert copy == Player("m-0007", "historical", "zerg", "m", "main", 123)
  with pytest.raises(ValueError, match="m-0007 is historical"):
    players.snapshot(copy, 1, 2)
  with pytest.raises(ValueError, match="does not learn"):
    players.pseudocode_rules().of(copy)
