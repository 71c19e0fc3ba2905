"""PFSP, the suffix rule and the branches of each kind of player."""

import collections

import hypothesis
import numpy as np
import pytest
import scipy.stats
from hypothesis import strategies as st

from starleague.league import matchmaking
from starleague.league.counts import Counts, CountTable
from starleague.league.matchmaking import MatchRules, Opponents, Roster
from starleague.league.players import HISTORICAL, LeagueError, Player, snapshot

MAIN = Player("main", "main", "protoss")
RIVAL = Player("rival", "main", "zerg")
EXPLOITER = Player("exploiter", "main_exploiter", "protoss")
LEAGUE_EXPLOITER = Player("hunter", "league_exploiter", "terran")
MAIN_COPIES = [snapshot(MAIN, i, i) for i in range(3)]
RIVAL_COPIES = [snapshot(RIVAL, i, i) for i in range(3)]
EXPLOITER_COPIES = [snapshot(EXPLOITER, i, i) for i in range(2)]
LIVE = [MAIN, RIVAL, EXPLOITER, LEAGUE_EXPLOITER]


class Rates:
  """Scores of one player by opponent; 0.5 for the others."""

  def __init__(self, **rates):
    self._rates = {name.replace("_", "-"): rate for name, rate in rates.items()}

  def scores(self, home, away):
    del home
    return np.array([self.score("", name) for name in away], np.float64)

  def score(self, home, away):
    del home
    return self._rates.get(away, 0.5)


class Draws:
  """A generator with given draws, followed by those of seed 0."""

  def __init__(self, *uniforms):
    self._uniforms = list(uniforms)
    self._rng = np.random.default_rng(0)

  def random(self):
    return self._uniforms.pop(0) if self._uniforms else self._rng.random()


@pytest.mark.parametrize("rates, weighting, expected", [
  ([.1, .5, .9], "variance", [.209302, .581395, .209302]),
  ([.1, .5, .9], "linear", [.6, .333333, .066667]),
  ([.1, .5, .9], "linear_capped", [.454545, .454545, .090909]),
  ([.1, .5, .9], "squared", [.757009, .233645, .009346]),
  ([0, .25, 1], "variance", [0, 1, 0]),
  ([0, .25, 1], "linear", [.571429, .428571, 0]),
  ([0, .25, 1], "linear_capped", [.5, .5, 0]),
  ([0, .25, 1], "squared", [.64, .36, 0]),
  ([1, 1], "variance", [.5, .5]),
  ([1, 1], "linear", [.5, .5]),
  ([1, 1], "linear_capped", [.5, .5]),
  ([1, 1], "squared", [.5, .5]),
  ([0, .25, 1], "uniform", [1 / 3, 1 / 3, 1 / 3]),
])
def test_pfsp_probabilities_by_hand(rates, weighting, expected):
  np.testing.assert_allclose(matchmaking.pfsp(rates, weighting), expected, atol=5e-7)


@hypothesis.given(st.lists(st.floats(0, 1), min_size=1, max_size=20),
                  st.sampled_from(matchmaking.WEIGHTINGS))
@hypothesis.settings(max_examples=30)
def test_pfsp_returns_probabilities(rates, weighting):
  probabilities = matchmaking.pfsp(rates, weighting)
  assert probabilities.shape == (len(rates),)
  assert (probabilities >= 0).all()
  assert probabilities.sum() == pytest.approx(1, abs=1e-12)
  if weighting != "variance":  # the others never prefer an easier opponent
    order = np.argsort(rates)
    assert (np.diff(probabilities[order]) <= 1e-12).all()


@pytest.mark.parametrize("rates, weighting, message", [
  ([.5], "cubed", "Unknown weighting 'cubed'"),
  ([], "squared", "there must be an opponent"),
  ([.5, 1.5], "squared", r"must be in \[0, 1\], found \[1.5\]"),
  ([.5, float("nan")], "linear", r"found \[nan\]"),
])
def test_pfsp_refuses_invalid_arguments(rates, weighting, message):
  with pytest.raises(ValueError, match=message):
    matchmaking.pfsp(rates, weighting)


@pytest.mark.parametrize("rates, kept", [
  ([.9, .6, .65, .6], [.9, .6, .65]),
  ([.9, .8, .7], []),
  ([.2, .5, .9], [.2, .5, .9]),
  ([.5], []),
  ([.4, .4, .3], []),
  ([.6, .8, .7, .5], [.6, .8]),
  ([], []),
])
def test_remove_monotonic_suffix(rates, kept):
  assert matchmaking.remove_monotonic_suffix(rates).tolist() == kept


@hypothesis.given(st.lists(st.sampled_from([.1, .3, .5, .7]), max_size=12))
@hypothesis.settings(max_examples=30)
def test_the_removed_suffix_only_falls(rates):
  kept = len(matchmaking.remove_monotonic_suffix(rates))
  if kept:
    assert rates[kept - 2] < rates[kept - 1]
  suffix = rates[max(kept - 1, 0):]
  assert all(a >= b for a, b in zip(suffix, suffix[1:], strict=False))


PLAYERS = [*LIVE, *MAIN_COPIES, *RIVAL_COPIES, *EXPLOITER_COPIES]


@pytest.mark.parametrize("uniform, rates, index, branch, candidates, both_learn", [
  (.49, {}, 0, "pfsp", MAIN_COPIES + RIVAL_COPIES + EXPLOITER_COPIES, False),
  # Verification: snapshots of exploiters first, then forgotten opponents.
  (.5, {"exploiter_0001": .29}, 1, "verification_exploiters", EXPLOITER_COPIES, False),
  (.5, {"exploiter_0001": .3, "rival_0000": .6, "rival_0001": .65, "rival_0002": .6}, 1,
   "verification_forgotten", RIVAL_COPIES[:2], False),
  (.64, {"rival_0000": .71, "rival_0001": .8, "rival_0002": .6}, 1, "self_play", [RIVAL], True),
  (.64, {"rival_0000": .9, "rival_0001": .6, "rival_0002": .1}, 1, "self_play", [RIVAL], True),
  # Self-play: live, also against itself, unless the opponent is too strong.
  (.65, {"exploiter_0001": 0}, 1, "self_play", [RIVAL], True),
  (.99, {}, 0, "self_play", [MAIN], True),
  (.99, {"rival": .300001}, 1, "self_play", [RIVAL], True),
  (.99, {"rival": .3}, 1, "self_play_past", RIVAL_COPIES, False),
])
def test_main_agent(uniform, rates, index, branch, candidates, both_learn):
  draws = Draws(uniform, (index + .5) / 2)  # the second one chooses between two main agents
  match = matchmaking.match(MAIN, PLAYERS, Rates(**rates), draws)
  assert match.branch == branch
  assert match.away in [player.name for player in candidates]
  assert match.home == "main" and match.both_learn == both_learn


@pytest.mark.parametrize("scheme, branch, candidates", [
  ("self_play", "self_play", {"main", "rival"}),
  ("fsp", "pfsp", {player.name for player in PLAYERS if player.kind == HISTORICAL})])
def test_schemes_without_priorities(scheme, branch, candidates):
  """Neither looks at scores: opponents are uniform, also those that are never or always beaten."""
  rng, names = np.random.default_rng(2), sorted(candidates)
  rates = Rates(**{name: index % 2 for index, name in enumerate(names)})
  found = [matchmaking.match(MAIN, PLAYERS, rates, rng, matchmaking.SCHEMES[scheme])
           for _ in range(2000)]
  assert {match.branch for match in found} == {branch}
  shares = [sum(match.away == name for match in found) / 2000 for name in names]
  np.testing.assert_allclose(shares, 1 / len(names), atol=.04)
  assert all(match.both_learn == (scheme == "self_play") for match in found)


def test_pfsp_alone_prefers_the_past_that_beats_it():
  rng, past = np.random.default_rng(4), [player for player in PLAYERS if player.kind == HISTORICAL]
  rates = Rates(**{player.name: index / len(past) for index, player in enumerate(past)})
  found = [matchmaking.match(MAIN, PLAYERS, rates, rng, matchmaking.SCHEMES["pfsp_alone"])
           for _ in range(4000)]
  assert {(match.branch, match.both_learn) for match in found} == {("pfsp", False)}
  weights = np.array([(1 - index / len(past)) ** 2 for index in range(len(past))])
  shares = [sum(match.away == player.name for match in found) / 4000 for player in past]
  np.testing.assert_allclose(shares, weights / weights.sum(), atol=.03)


def test_pfsp_and_self_play_have_half_of_the_matches_each():
  """Without verification: a main exploiter that beats the agent changes nothing."""
  rng, rates = np.random.default_rng(5), Rates(**{"exploiter-0000": .1, "rival": .1})
  found = [matchmaking.match(MAIN, PLAYERS, rates, rng, matchmaking.SCHEMES["pfsp_self_play"])
           for _ in range(4000)]
  branches = [match.branch for match in found]
  assert branches.count("pfsp") / 4000 == pytest.approx(.5, abs=.03)
  assert branches.count("pfsp") + branches.count("self_play") == 4000
  lives = [match.away for match in found if match.branch == "self_play"]
  assert lives.count("rival") / len(lives) == pytest.approx(.5, abs=.04)  # at any score


def test_main_agent_shares():
  """Half PFSP; verification finds no match here, so the other half is self-play."""
  rng = np.random.default_rng(1)
  branches = [matchmaking.match(MAIN, PLAYERS, Rates(), rng).branch for _ in range(2000)]
  assert branches.count("pfsp") / 2000 == pytest.approx(.5, abs=.04)
  assert branches.count("pfsp") + branches.count("self_play") == 2000
  rates = Rates(**{"exploiter-0000": .1})
  branches = [matchmaking.match(MAIN, PLAYERS, rates, rng).branch for _ in range(2000)]
  assert branches.count("verification_exploiters") / 2000 == pytest.approx(.15, abs=.03)
  assert branches.count("self_play") / 2000 == pytest.approx(.35, abs=.04)


@pytest.mark.parametrize("rates, expected", [
  ([.1, .5, .9], [.757009, .233645, .009346]),
  # Weights of 0.0036, 0.0004 and 0.0001: most draws by rejection accept nobody.
  ([.94, .98, .99], [.878049, .097561, .024390]),
  ([1, 1, 1], [1 / 3, 1 / 3, 1 / 3]),
  ([1, 0, 1], [0, 1, 0]),
])
def test_pfsp_matches_follow_the_probabilities(rates, expected):
  rates = Rates(main_0000=rates[0], main_0001=rates[1], main_0002=rates[2])
  rng = np.random.default_rng(2)
  rules = MatchRules(pfsp_share=1.0)
  names = [matchmaking.match(MAIN, [MAIN, *MAIN_COPIES], rates, rng, rules).away
           for _ in range(3000)]
  found = [names.count(player.name) / 3000 for player in MAIN_COPIES]
  np.testing.assert_allclose(found, expected, atol=.025)
  assert all(number == 0 for number, share in zip(found, expected, strict=True) if share == 0)


def test_a_match_takes_a_limited_number_of_draws():
  """The coordinator makes the draws of a match in advance."""
  rates = Rates(**{player.name: 1 for player in PLAYERS if player.parent}, main=0, rival=0)
  for home in (MAIN, EXPLOITER, LEAGUE_EXPLOITER):
    for uniform in (.1, .55, .9):
      rng = Draws(uniform, *[.5] * 40)
      matchmaking.match(home, PLAYERS, rates, rng)
      assert 41 - len(rng._uniforms) <= matchmaking.MOST_DRAWS


@pytest.mark.parametrize("rate, rules, uniform, branch", [
  (.1, MatchRules(), .9, "exploit_past"),  # exactly 0.1 is not above it
  (.100001, MatchRules(), .9, "exploit"),
  (.15, MatchRules(exploiter_score=.2, exploiter_past_share=.5), .4, "exploit_past"),
  (.15, MatchRules(exploiter_score=.2, exploiter_past_share=.5), .5, "exploit"),
])
def test_main_exploiter(rate, rules, uniform, branch):
  match = matchmaking.match(EXPLOITER, PLAYERS, Rates(rival=rate), Draws(uniform, .75), rules)
  assert match.branch == branch and not match.both_learn
  past = branch == "exploit_past"
  assert match.away in ([player.name for player in RIVAL_COPIES] if past else ["rival"])


def test_league_exploiter_plays_the_past_capped():
  rates = Rates(main_0000=0, main_0001=.25, main_0002=1)
  rng = np.random.default_rng(3)
  names = [matchmaking.match(LEAGUE_EXPLOITER, [*LIVE, *MAIN_COPIES], rates, rng).away
           for _ in range(1000)]
  assert names.count("main-0000") / 1000 == pytest.approx(.5, abs=.06)
  assert names.count("main-0002") == 0


@pytest.mark.parametrize("home", [MAIN, EXPLOITER, LEAGUE_EXPLOITER])
def test_without_a_past_live_main_agents_are_played(home):
  rng = np.random.default_rng(4)
  rates = Rates(main=0, rival=0)
  names = {matchmaking.match(home, LIVE, rates, rng).away for _ in range(40)}
  assert names == {"main", "rival"}


def test_scripted_players_are_past_with_scripted_are_past():
  script = Player("rush", "scripted")
  rules = MatchRules(pfsp_share=1.0, scripted_are_past=True)
  match = matchmaking.match(MAIN, [MAIN, script], Rates(), np.random.default_rng(0), rules)
  assert match.away == "rush"
  match = matchmaking.match(MAIN, [MAIN, script], Rates(), np.random.default_rng(0))
  assert match.away == "main"


def test_error_messages_name_the_player():
  rng = np.random.default_rng(0)
  with pytest.raises(LeagueError, match="^Player main-0000 is historical: it requests no matches"):
    matchmaking.match(MAIN_COPIES[0], PLAYERS, Rates(), rng)
  with pytest.raises(LeagueError, match="^exploiter has no opponent: the league has no main agent"):
    matchmaking.match(EXPLOITER, [EXPLOITER], Rates(), rng)


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=30)
def test_matches_are_within_the_league_and_repeat_with_their_seed(data):
  rates = Rates(**{player.name: data.draw(st.floats(0, 1)) for player in PLAYERS})
  home = data.draw(st.sampled_from(LIVE))
  seed = data.draw(st.integers(0, 1000))
  match = matchmaking.match(home, PLAYERS, rates, np.random.default_rng(seed))
  assert match.away in {player.name for player in PLAYERS}
  assert match == matchmaking.match(home, PLAYERS, rates, np.random.default_rng(seed))


def plain_probabilities(home, players, scores):
  """Returns (branch, away) -> probability, by the published rules with numpy, in full."""
  found = collections.Counter()
  def draw(share, names, weighting, branch):
    rates = np.array([scores(name) for name in names])
    for name, probability in zip(names, matchmaking.pfsp(rates, weighting), strict=True):
      found[branch, name] += share * float(probability)
  past = [player.name for player in players if player.kind == HISTORICAL]
  if home.kind == "league_exploiter":
    draw(1, past, "linear_capped", "pfsp")
    return found
  if home.kind == "main":
    draw(.5, past, "squared", "pfsp")
  mains = [player.name for player in players if player.kind == "main"]
  exploiters = [player.name for player in players if player.parent_kind == "main_exploiter"]
  for opponent in mains:
    copies = [player.name for player in players if player.parent == opponent]
    alone, threshold = (.35, .3) if home.kind == "main" else (1.0, .1)
    if home.kind == "main":
      kept = matchmaking.remove_monotonic_suffix([scores(name) for name in copies])
      if min(map(scores, exploiters)) < .3:
        draw(.15 / len(mains), exploiters, "squared", "verification_exploiters")
      elif kept.size and kept.min() < .7:
        draw(.15 / len(mains), copies[:kept.size], "squared", "verification_forgotten")
      else:
        alone = .5
    branch = "self_play" if home.kind == "main" else "exploit"
    if scores(opponent) > threshold:
      found[branch, opponent] += alone / len(mains)
    else:
      draw(alone / len(mains), copies, "variance", f"{branch}_past")
  return found


def random_table(home, players, seed, lowest):
  """Returns counts of a player's games with scores from `lowest` to 1."""
  rng, table = np.random.default_rng(seed), CountTable()
  for player in players:
    if player != home:
      wins = float(rng.uniform(lowest, 1))
      table.put({(home.name, player.name): Counts(1, wins, 0, 1 - wins)})
  return table


MANY = [*LIVE, *(snapshot(player, i, i) for i in range(12) for player in LIVE)]


@pytest.mark.parametrize("home", [MAIN, EXPLOITER, LEAGUE_EXPLOITER], ids=lambda p: p.kind)
@pytest.mark.parametrize("seed, lowest", [(0, 0), (1, .25), (2, .35), (3, .75), (4, .97)])
def test_matches_have_exactly_the_plain_probabilities(home, seed, lowest):
  """A chi-squared test of 20,000 matches, before and after results, by opponent and rule."""
  table = random_table(home, MANY, seed, lowest)
  opponents = Opponents(home, Roster(MANY), table)
  draws = iter(np.random.default_rng(seed).random, None)
  for change in ({}, {"rival": .05, "exploiter-0003": .1, "main-0005": .2, "hunter-0011": 0},
                 {"rival": .9, "main-0000": 1, "exploiter-0003": .9}):
    table.put({(home.name, name): Counts(1, wins, 0, 1 - wins) for name, wins in change.items()})
    expected = plain_probabilities(home, MANY, lambda name: table.score(home.name, name))
    assert sum(expected.values()) == pytest.approx(1)
    matches = [opponents.match(draws) for _ in range(20_000)]
    found = collections.Counter((match.branch, match.away) for match in matches)
    assert found.keys() <= {key for key, share in expected.items() if share > 0}
    keys = [key for key, share in expected.items() if 20_000 * share >= 5]
    observed = [found[key] for key in keys]
    observed.append(20_000 - sum(observed))
    shares = [expected[key] for key in keys]
    shares.append(max(1 - sum(shares), 0))
    used = [i for i, share in enumerate(shares) if 20_000 * share > 1e-6]
    if len(used) > 1:
      total = sum(observed[i] for i in used)
      wanted = np.array([shares[i] for i in used]) / sum(shares[i] for i in used) * total
      assert scipy.stats.chisquare([observed[i] for i in used], wanted).pvalue > 1e-4


@pytest.mark.parametrize("home", [MAIN, EXPLOITER, LEAGUE_EXPLOITER], ids=lambda p: p.kind)
def test_kept_opponents_make_the_matches_of_fresh_ones(home):
  """The same draws give the same matches, whatever was kept before the latest result."""
  table, rng = random_table(home, MANY, 5, 0), np.random.default_rng(5)
  kept = Opponents(home, Roster(MANY), table)
  for seed in range(300):
    away = MANY[rng.integers(len(MANY))].name
    if away != home.name:
      wins = float(rng.uniform())
      table.put({(home.name, away): Counts(1, wins, 0, 1 - wins)})
    fresh = matchmaking.match(home, MANY, table, np.random.default_rng(seed))
    assert kept.match(iter(np.random.default_rng(seed).random, None)) == fresh
