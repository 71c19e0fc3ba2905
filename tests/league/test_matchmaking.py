"""PFSP, the suffix rule and the branches of each kind of player."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.league import matchmaking
from starleague.league.matchmaking import MatchRules
from starleague.league.players import HISTORICAL, Player, snapshot

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
  with pytest.raises(ValueError, match="main-0000 is historical"):
    matchmaking.match(MAIN_COPIES[0], PLAYERS, Rates(), rng)
  with pytest.raises(ValueError, match="exploiter has no opponent"):
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
