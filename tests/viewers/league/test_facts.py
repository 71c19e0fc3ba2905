"""The facts of a league."""

from starleague.common.results import Row
from starleague.league import players as kinds
from starleague.league.players import Player
from starleague.viewers.league import facts as league_facts

MAIN = Player("m", kinds.MAIN)
FROZEN = Player("m-0001", kinds.HISTORICAL, parent="m", parent_kind=kinds.MAIN)
SCRIPT = Player("L5", kinds.SCRIPTED)


def test_the_anchor_is_scripted_or_else_the_first_historical_player():
  assert league_facts.anchor_of([MAIN, FROZEN, SCRIPT]) == 2
  assert league_facts.anchor_of([MAIN, FROZEN]) == 1
  assert league_facts.anchor_of([MAIN]) == 0


def test_kinds_in_words():
  assert league_facts.kind_name(MAIN) == "main agent"
  assert league_facts.kind_name(FROZEN) == "historical main agent"
  assert league_facts.kind_name(SCRIPT) == "scripted"


def test_actors_are_live_if_they_reported_in_the_last_minute(facts):
  def rows(*seconds):
    return [Row(second, 0, "", 100.0) for second in seconds]

  found = facts._replace(curves={
    facts.name: {"actor/0": rows(10, 200), "actor/1": rows(139), "actor/2": rows(100, 141),
                 "speed/actor": rows(199)},
    "learner": {"actor/3": rows(200), "loss/total": rows(201)}})
  assert found.live_actors() == ["0", "2"]
  assert facts._replace(curves={}).live_actors() == []


def test_deaths_are_counted_by_process(facts):
  found = facts._replace(curves={
    facts.name: {"deaths/actor_0": [Row(5, 0, "", 1.0), Row(9, 0, "", 3.0)],
                 "deaths/learner": [Row(7, 0, "", 1.0)], "speed/actor": [Row(9, 0, "", 4.0)]},
    "learner": {"deaths/other": [Row(5, 0, "", 1.0)]}})
  assert found.deaths() == {"actor_0": 3, "learner": 1}
  assert facts._replace(curves={}).deaths() == {}


def test_learners_and_their_snapshots(facts):
  assert len(facts.players) == 45 and len(facts.learners) == 12
  assert [learner.kind for learner in facts.learners] == (
    [kinds.MAIN] * 3 + [kinds.MAIN_EXPLOITER] * 3 + [kinds.LEAGUE_EXPLOITER] * 6)
  taken = [facts.snapshots(learner) for learner in facts.learners]
  assert sum(map(len, taken)) == 33  # three of supervised agents
  for learner, indices in zip(facts.learners, taken, strict=True):
    steps = [facts.players[i].steps for i in indices]
    assert steps == sorted(steps)
    assert {facts.players[i].parent for i in indices} <= {learner.name}


def test_snapshots_from_before_the_last_reset_of_their_parent(facts):
  first, second = (Player(f"m-000{n}", kinds.HISTORICAL, parent="m", parent_kind=kinds.MAIN)
                   for n in (2, 3))
  found = facts._replace(players=(MAIN, FROZEN, first, second, SCRIPT))
  for resets, former in ((set(), set()), ({"m-0001"}, {"m-0001"}),
                         ({"m-0001", "m-0002"}, {"m-0001", "m-0002"}),
                         ({"m-0003"}, {"m-0001", "m-0002", "m-0003"})):
    assert found._replace(resets=frozenset(resets)).former() == former
