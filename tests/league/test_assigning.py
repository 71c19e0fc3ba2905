"""Assignments of the coordinator: leases, repeats, restarts, pauses, evaluators."""

import hypothesis
import pytest
from hypothesis import strategies as st

from starleague.league import matchmaking, players
from starleague.league.coordinator import Coordinator, Options
from starleague.league.leases import EVALUATION, Assignment
from starleague.league.payoff import LOSS, WIN
from starleague.league.players import LeagueError, UnknownPlayerError
from starleague.league.reporting import GamesReport, PlayedGame

MAIN, EXPLOITER, HUNTER = "zerg-main-0", "zerg-main_exploiter-0", "zerg-league_exploiter-0"
FIRST = "zerg-main-0-0000"


class Clock:
  """A clock that the test moves."""

  seconds = 50.0

  def __call__(self):
    return self.seconds


def start(path, **options):
  league = players.initial_players(["zerg"], league_exploiters=1)
  return Coordinator(path, league, **{"options": Options(lease_s=10.0), **options})


@pytest.fixture
def clock():
  return Clock()


@pytest.fixture
def league(tmp_path, clock):
  opened = start(tmp_path / "league.sqlite", clock=clock)
  yield opened
  opened.close()


def play(league, assignment, games, outcome=WIN, holder=""):
  report = GamesReport(assignment, [PlayedGame(game, outcome, 0.) for game in games])
  return [receipt.counted for receipt in league.report_games([report], holder)[0]]


def test_assignments_are_the_matches_of_the_same_seed(tmp_path):
  one, two = start(tmp_path / "1.sqlite", seed=7), start(tmp_path / "2.sqlite", seed=7)
  matches = [one.get_match(HUNTER)] + [one.get_match(MAIN) for _ in range(300)]
  first, *others = two.matches(HUNTER) + two.matches(MAIN, 300, 5)
  assert first == Assignment("1-1", HUNTER, FIRST, "pfsp", False, 1)
  assert others[-1].id == "1-301" and {each.games for each in others} == {5}
  assert [(each.home, each.away, each.both_learn, each.branch) for each in [first, *others]] == [
    tuple(match) for match in matches]
  assert len({match.branch for match in matches}) > 1


def test_a_main_agent_may_have_rules_of_its_own(tmp_path):
  pair = players.initial_players(["zerg"], 2, 0, 0)
  other = "zerg-main-1"
  with_rules = Coordinator(tmp_path / "1.sqlite", pair, own_rules={
    other: matchmaking.SCHEMES["fsp"]})
  own, usual = ([with_rules.get_match(name).branch for _ in range(60)] for name in (other, MAIN))
  assert set(own) == {"pfsp"} and "self_play" in usual  # the past alone
  with_rules.close()


def test_a_pair_whose_games_always_fail_does_not_keep_an_evaluator(league):
  """It is tried three times for each time that its turn comes."""
  played = {}
  for _ in range(60):
    assignment, = league.evaluation_matches(1, 2, holder="evaluator")
    pair = frozenset((assignment.home, assignment.away))
    played[pair] = played.get(pair, 0) + 1
    if pair == {MAIN, FIRST}:
      league.release([assignment], "evaluator")
    else:
      play(league, assignment, range(2), holder="evaluator")
  assert len(played) == 6  # all pairs of four players
  others = [number for pair, number in played.items() if pair != {MAIN, FIRST}]
  assert min(others) >= 5
  assert played[frozenset((MAIN, FIRST))] <= 3 * max(others)


def test_a_dead_actors_match_is_given_to_the_next_actor_of_the_player(league, clock):
  lost, kept = league.matches(HUNTER, 2, 4, holder="dead")
  play(league, lost, [0, 2], holder="dead")
  clock.seconds += 9
  assert league.renew([kept], "dead") == [kept.id]
  clock.seconds += 2
  assert lost not in league.matches(MAIN, 3, holder="second")
  again, new = league.matches(HUNTER, 2, 1, holder="second")
  assert again == lost and new.id not in (lost.id, kept.id)
  assert play(league, again, [0, 1, 2, 3], holder="second") == [False, True, False, True]
  assert league.leases.find(lost.id) is None  # finished
  assert league.payoff.results(HUNTER, FIRST).games == 4


def test_a_late_result_of_a_match_given_again_counts_once_the_first_one(league, clock):
  lost, = league.matches(HUNTER, holder="slow")
  clock.seconds += 10
  again, = league.matches(HUNTER, holder="second")
  assert again == lost
  assert play(league, again, [0], WIN, "second") == [True]
  assert play(league, lost, [0], LOSS, "slow") == [False]
  assert league.payoff.results(HUNTER, FIRST) == (1, 1, 0, 0)
  assert league.payoff.score(HUNTER, FIRST) == 1


def test_a_repeated_request_gets_the_same_assignments(league):
  first = league.matches(MAIN, 3, 2, holder="a", request="r1")
  assert league.matches(MAIN, 3, 2, holder="a", request="r1") == first
  assert league.matches(MAIN, 3, 2, holder="a", request="r2") != first
  pairs = league.evaluation_matches(2, holder="a", request="r3")
  assert league.evaluation_matches(2, holder="a", request="r3") == pairs
  assert len(league.leases) == 8


def test_after_a_restart_leases_begin_afresh(tmp_path, clock):
  league = start(tmp_path / "league.sqlite", clock=clock)
  done, half, whole = league.matches(HUNTER, 3, 2, holder="actor")
  play(league, done, [0, 1], holder="actor")
  play(league, half, [1], holder="actor")
  clock.seconds += 9
  league.close()
  clock.seconds -= 1e4  # another process, another clock
  league = start(tmp_path / "league.sqlite", clock=clock)
  assert league.leases.assignments() == [half, whole]
  clock.seconds += 9
  assert league.renew([done, half], "actor") == [half.id]
  clock.seconds += 2
  new, = league.matches(HUNTER, 1, 1, holder="second")
  assert new == whole
  assert play(league, half, [0, 1], holder="actor") == [True, False]
  assert league.leases.assignments() == [whole]
  assert league.matches(MAIN)[0].id.startswith("2-")
  league.close()


def test_an_assignment_that_a_kill_erased_is_restored_by_its_actor(tmp_path):
  league = start(tmp_path / "league.sqlite")
  one, two, three = league.matches(HUNTER, 3, 2, holder="actor")
  league._held.close()  # killed: neither flushed nor closed
  league = start(tmp_path / "league.sqlite")
  assert league.leases.assignments() == []
  assert league.renew([one], "actor") == [one.id]
  assert play(league, two, [0], holder="actor") == [True]
  assert play(league, three, [0, 1], holder="actor") == [True, True]
  assert league.leases.assignments() == [one, two]
  assert league.renew([one, two, three], "actor") == [one.id, two.id]
  assert play(league, two, [0, 1], holder="actor") == [False, True]
  assert {each.id for each in league.matches(HUNTER, 4)}.isdisjoint({one.id, two.id, three.id})
  league.close()


def test_a_flush_writes_assignments(tmp_path):
  league = start(tmp_path / "league.sqlite")
  assigned = league.matches(MAIN, 3, holder="actor")
  league.flush()
  league._held.close()
  league = start(tmp_path / "league.sqlite")
  assert league.leases.assignments() == assigned
  league.close()


def test_a_paused_player_has_no_games(tmp_path, clock):
  league = start(tmp_path / "league.sqlite", clock=clock)
  playing, = league.matches(HUNTER, 1, 2, holder="actor")
  league.pause(HUNTER)
  assert league.paused == {HUNTER} and league.matches(HUNTER) == []
  assert league.renew([playing], "actor") == []
  assert play(league, playing, [0], holder="actor") == [True]  # it was played
  assert all(HUNTER not in (each.home, each.away) for each in league.evaluation_matches(6))
  league.close()
  league = start(tmp_path / "league.sqlite", clock=clock)
  assert league.paused == {HUNTER}  # stored
  league.pause(HUNTER, False)
  clock.seconds += 10
  assert league.matches(HUNTER, 1) == [playing]
  league.close()


def test_a_paused_player_is_nobodys_opponent(league, clock):
  assigned, = league.matches(HUNTER, 1, holder="dead")
  assert assigned.away == FIRST
  league.pause(FIRST)
  assert {each.away for each in league.matches(HUNTER, 20)} == {MAIN}
  clock.seconds += 10
  assert assigned not in league.matches(HUNTER, 1)  # it stays available for later
  league.pause(MAIN)
  assert league.matches(HUNTER) == [] == league.matches(EXPLOITER)
  league.pause(FIRST, False)
  league.pause(MAIN, False)
  clock.seconds += 10
  assert assigned in league.matches(HUNTER, 30)


def test_evaluators_share_the_pairs_and_inherit_those_of_dead_ones(league, clock):
  pairs = league.evaluation_matches(4, 8, holder="first") + league.evaluation_matches(
    2, 8, holder="second")
  assert {each.branch for each in pairs} == {EVALUATION}
  assert len({frozenset((each.home, each.away)) for each in pairs}) == 6  # all pairs of 4 players
  clock.seconds += 10
  assert league.evaluation_matches(1, holder="third") == pairs[:1]
  only = league.evaluation_matches(1, among=[MAIN, FIRST], holder="third")
  assert {only[0].home, only[0].away} == {MAIN, FIRST} and only[0] not in pairs


def test_evaluators_know_of_games_players_and_pauses(league):
  """The pairs of all players are kept: results, a new player and a pause reach them."""
  def pair():
    assigned, = league.evaluation_matches(1, 50)
    play(league, assigned, range(50))
    return frozenset((assigned.home, assigned.away))
  assert len({pair() for _ in range(6)}) == 6  # all pairs of 4 players
  league.add_player(players.Player("script", players.SCRIPTED))
  assert {frozenset(("script", other)) for other in (MAIN, EXPLOITER, HUNTER, FIRST)} == {
    pair() for _ in range(4)}
  league.pause(MAIN)
  league.add_player(players.Player("second", players.SCRIPTED))
  assert {frozenset(("second", other)) for other in (EXPLOITER, HUNTER, FIRST)} == {
    pair() for _ in range(3)}
  # Two scripted players never meet.
  assert league.evaluation_matches(9, among=["script", "second"]) == []
  assert frozenset(("second", "script")) not in {pair() for _ in range(30)}


@pytest.mark.parametrize("call, message", [
  (lambda league: league.matches("nobody"), "no player 'nobody'"),
  (lambda league: league.matches(FIRST), f"{FIRST} is historical: it requests no matches"),
  (lambda league: league.evaluation_matches(among=["nobody", MAIN]), "no player 'nobody'"),
  (lambda league: league.pause("nobody"), "no player 'nobody'"),
  (lambda league: league.renew([Assignment("1-1", "nobody", MAIN, "pfsp", False, 1)]),
   "no player 'nobody'"),
  (lambda league: league.renew([Assignment("x", MAIN, MAIN, "pfsp", False, 1)]),
   "'x': expected one that the league gave"),
])
def test_refused_requests_name_the_fault(league, call, message):
  with pytest.raises((LeagueError, UnknownPlayerError), match=message):
    call(league)
  assert len(league.leases) == 0


class World:
  """A league, its actors with the assignments that they hold, and the games that counted."""

  def __init__(self, path):
    self.path, self.clock, self.counted = path, Clock(), set()
    self.held = {"a": {}, "b": {}}
    self.league = start(path, clock=self.clock)

  def take(self, actor, number):
    assigned = self.league.matches(HUNTER, 1 + number % 2, 2, holder=actor)
    assert len({each.id for each in assigned}) == 1 + number % 2
    for each in assigned:
      assert self.held[actor].setdefault(each.id, each) == each  # the same, if it was held before

  def renew(self, actor, number):
    held = self.held[actor]
    kept = self.league.renew(held.values(), actor)
    assert sorted(kept) == sorted(set(kept))
    for name in set(held) - set(kept):
      finished = {held[name].result_id(0), held[name].result_id(1)} <= self.counted
      assert finished or any(name in others for other, others in self.held.items()
                             if other != actor), "lost while its holder lives"
      del held[name]

  def report(self, actor, number):
    for each in list(self.held[actor].values())[:1 + number % 2]:
      game = number // 2 % 2
      new = each.result_id(game) not in self.counted
      assert play(self.league, each, [game], holder=actor) == [new]
      self.counted.add(each.result_id(game))

  def release(self, actor, number):
    self.league.release(self.held[actor].values(), actor)
    self.held[actor].clear()

  def die(self, actor, number):
    self.held[actor].clear()  # the next actor of the same name holds nothing

  def lapse(self, actor, number):
    self.clock.seconds += (3.0, 10.0)[number % 2]
    self.league.flush()

  def restart(self, actor, number):
    if number % 2:
      self.league.close()
    else:
      self.league._held.close()  # killed: neither flushed nor closed
    self.league = start(self.path, clock=self.clock)


@hypothesis.given(st.lists(st.tuples(
  st.sampled_from(["take", "renew", "report", "release", "die", "lapse", "restart"]),
  st.sampled_from("ab"), st.integers(0, 3)), min_size=15, max_size=40))
@hypothesis.settings(max_examples=100, deadline=None)
def test_no_game_counts_twice_and_none_is_lost_while_its_holder_lives(tmp_path_factory, events):
  """Any interleaving; in the end all games of each assignment that an actor holds have counted."""
  world = World(tmp_path_factory.mktemp("world") / "league.sqlite")
  for event, actor, number in events:
    getattr(world, event)(actor, number)
  promised = [each for held in world.held.values() for each in held.values()]
  for actor in world.held:
    world.renew(actor, 0)
  remaining = world.league.leases.assignments()
  assert {each.id for each in promised if {each.result_id(0), each.result_id(1)} - world.counted
          } <= {each.id for each in remaining}
  world.clock.seconds += 10
  found = world.league.matches(HUNTER, len(remaining), 2, holder="last") if remaining else []
  assert sorted(found) == sorted(remaining)  # no new one before all are given again
  for each in found:
    missing = [game for game in range(2) if each.result_id(game) not in world.counted]
    assert play(world.league, each, [0, 1], holder="last") == [game in missing for game in range(2)]
    world.counted |= {each.result_id(0), each.result_id(1)}
  assert world.league.payoff.results(HUNTER, FIRST).games + world.league.payoff.results(
    HUNTER, MAIN).games == len(world.counted)
  assert {each.result_id(game) for each in promised for game in range(2)} <= world.counted
  assert world.league.leases.assignments() == []
  world.league.close()
