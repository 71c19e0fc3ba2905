"""Population-based training: Welch's test, selection and exploration."""

import functools
import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats

from starleague.common.errors import UserError
from starleague.learner.evolution import (
  LINEAR,
  Range,
  parse_ranges,
  perturb,
  resample,
  sample,
  t_selection,
  truncation_selection,
  welch_test,
)

RANGES = {"learning_rate": Range(1e-5, 1e-1), "entropy": Range(-1., 3., LINEAR)}


def rng(*seed):
  return np.random.default_rng(seed or 0)


def test_welch_by_hand():
  """Means 2 and 7, variances 1 and 20/3: t = -5 / sqrt(1/3 + 5/3), df = 2^2 / (1/18 + 25/27)."""
  statistic, degrees, p_value, error = welch_test([1, 2, 3], [4, 6, 8, 10])
  assert statistic == pytest.approx(-5 / math.sqrt(2), rel=1e-14)
  assert degrees == pytest.approx(216 / 53, rel=1e-14)
  assert p_value == pytest.approx(.01168838, abs=5e-9)
  assert error == pytest.approx(math.sqrt(2), rel=1e-14)


_SAMPLES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12).filter(
  lambda values: np.std(values) > 1e-3)


@hypothesis.given(_SAMPLES, _SAMPLES)
@hypothesis.settings(max_examples=60, deadline=None)
def test_welch_against_scipy(mine, other):
  expected = stats.ttest_ind(mine, other, equal_var=False, alternative="less")
  found = welch_test(mine, other)
  np.testing.assert_allclose(
    found[:3], (expected.statistic, expected.df, expected.pvalue), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("mine, other, expected", [
  ([.1] * 3, [.1] * 7, (0, 8, .5)),
  ([1, 1], [2, 2], (-math.inf, 2, 0)),
  ([3, 3], [2, 2, 2], (math.inf, 3, 1)),
])
def test_welch_of_constant_samples(mine, other, expected):
  assert welch_test(mine, other) == (*expected, 0)


@pytest.mark.parametrize("sample_", [[1.], [1., math.nan], [1., math.inf]])
def test_welch_refuses_invalid_samples(sample_):
  with pytest.raises(ValueError, match="other: expected at least 2 finite numbers, found"):
    welch_test([1., 2.], sample_)


def test_t_selection_copies_significantly_better_members():
  better, noisy = [5., 6., 7.], [-30., 0., 60.]
  assert t_selection(rng(), "a", {"a": [1., 2., 3.], "b": better}) == "b"
  assert t_selection(rng(), "b", {"a": [1., 2., 3.], "b": better}) is None
  # The mean is higher, but not significantly: p = 0.41.
  assert t_selection(rng(), "a", {"a": [1., 2., 3.], "b": noisy}) is None
  assert t_selection(rng(), "a", {"a": [1., 2., 3.], "b": noisy}, significance=.45) == "b"
  assert t_selection(rng(), "a", {"a": [1., 2., 3.], "b": [9.]}) is None
  assert t_selection(rng(), "a", {"a": [1., 2.]}) is None


def test_t_selection_draws_its_opponent_uniformly():
  evaluations = {"a": [0., 1.], "b": [50., 51.], "c": [60., 61.], "d": [-9., -8.]}
  drawn = [t_selection(rng(i), "a", evaluations) for i in range(900)]
  for name in ("b", "c", None):  # 5 standard deviations
    assert abs(drawn.count(name) - 300) < 5 * math.sqrt(900 * 2 / 9)


@pytest.mark.parametrize("size, number", [(2, 1), (4, 1), (10, 2), (24, 4)])
def test_truncation_selection_copies_from_the_top_to_the_bottom_fifth(size, number):
  names = [f"m{i:02d}" for i in range(size)]
  evaluations = {name: [i - 1., i + 1.] for i, name in enumerate(names)} | {"new": []}
  for i, name in enumerate(names):
    drawn = {truncation_selection(rng(i, j), name, evaluations) for j in range(60)}
    assert drawn == (set(names[-number:]) if i < number else {None})
  assert truncation_selection(rng(), "new", evaluations) is None


def test_truncation_selection_with_ties_and_other_fractions():
  assert truncation_selection(rng(), "a", {"a": [1.], "b": [1.], "c": [1.]}) is None
  names = [f"{i:02d}" for i in range(100)]
  evaluations = {name: [float(name)] for name in names}
  drawn = [name for name in names if truncation_selection(rng(), name, evaluations, .29)]
  assert drawn == names[:29]


@pytest.mark.parametrize("select, options, message", [
  (t_selection, {"significance": .5}, r"significance: expected a number in \(0, 0.5\), found 0.5"),
  (truncation_selection, {"fraction": .6}, r"fraction: expected a number in \(0, 0.5\], found 0.6"),
  (t_selection, {}, r"member: expected one of \['a'\], found 'b'"),
  (truncation_selection, {}, r"member: expected one of \['a'\], found 'b'"),
])
def test_selections_refuse_invalid_arguments(select, options, message):
  with pytest.raises(ValueError, match=message):
    select(rng(), "a" if options else "b", {"a": [1., 2.]}, **options)


def test_perturb_multiplies_by_a_factor():
  before = {"learning_rate": 1e-3, "entropy": 1.}
  drawn = [perturb(rng(i), before, RANGES) for i in range(400)]
  for name, value in before.items():
    up = sum(after[name] == value * 1.2 for after in drawn)
    assert up + sum(after[name] == value * .8 for after in drawn) == 400
    assert abs(up - 200) < 50  # 5 standard deviations
  assert {tuple(after.values()) for after in drawn} == {
    (a, b) for a in (1e-3 * .8, 1e-3 * 1.2) for b in (.8, 1.2)}  # independently


def test_perturb_as_impala_does():
  explore = functools.partial(perturb, factors=(1 / 1.2, 1.2), probability=1 / 3)
  drawn = [explore(rng(i), {"learning_rate": 1e-3, "entropy": 1.}, RANGES) for i in range(900)]
  rates = [after["learning_rate"] for after in drawn]
  assert set(rates) == {1e-3 / 1.2, 1e-3, 1e-3 * 1.2}
  assert abs(rates.count(1e-3) - 600) < 5 * math.sqrt(200)


def test_perturb_stays_within_the_range():
  drawn = {tuple(perturb(rng(i), {"learning_rate": .09, "entropy": 3.}, RANGES).items())
           for i in range(50)}
  assert drawn == {(("learning_rate", a), ("entropy", b))
                   for a in (.09 * .8, .1) for b in (3 * .8, 3.)}


def test_resample_draws_some_from_the_prior():
  before = {"learning_rate": 1e-3, "entropy": 1.}
  drawn = [resample(rng(i), before, RANGES) for i in range(2000)]
  rates = np.array([after["learning_rate"] for after in drawn])
  changed = rates != 1e-3
  assert abs(changed.sum() - 500) < 5 * math.sqrt(375)
  # Uniform in the logarithm: equally many in each decade.
  decades = np.histogram(np.log10(rates[changed]), [-5, -4, -3, -2, -1])[0]
  assert stats.chisquare(decades).pvalue > .001
  entropies = np.array([after["entropy"] for after in drawn if after["entropy"] != 1.])
  assert stats.kstest(entropies, "uniform", args=(-1, 4)).pvalue > .001
  assert resample(rng(), before, RANGES, probability=0.) == before


@st.composite
def _ranges(draw):
  ranges = {}
  for name in draw(st.sets(st.sampled_from("abc"), min_size=1)):
    if draw(st.booleans()):
      low = draw(st.floats(1e-12, 1e6))
      ranges[name] = Range(low, low * draw(st.floats(1.001, 1e9)))
    else:
      low = draw(st.floats(-1e6, 1e6))
      ranges[name] = Range(low, low + draw(st.floats(1e-3, 1e6)), LINEAR)
  return ranges


@hypothesis.given(_ranges(), st.integers(0, 2 ** 32), st.floats(.01, 100), st.floats(0, 1))
@hypothesis.settings(max_examples=80, deadline=None)
def test_hyperparameters_stay_within_their_ranges(ranges, seed, factor, probability):
  generator = rng(seed)
  value = sample(generator, ranges)
  for _ in range(10):
    assert value.keys() == ranges.keys()
    assert all(ranges[name].low <= value[name] <= ranges[name].high for name in value)
    value = perturb(generator, value, ranges, (1 / factor, factor), probability)
    value = resample(generator, value, ranges, probability)


@pytest.mark.parametrize("function", [perturb, resample])
@pytest.mark.parametrize("hyperparameters, message", [
  ({"learning_rate": .2, "entropy": 0.}, "'learning_rate': expected 1e-05 to 0.1, found 0.2"),
  ({"learning_rate": .01, "entropy": math.nan}, "'entropy': expected -1.0 to 3.0, found nan"),
  ({"rate": .1}, r"expected \['entropy', 'learning_rate'\], found \['rate'\]"),
])
def test_hyperparameters_outside_are_refused(function, hyperparameters, message):
  with pytest.raises(ValueError, match=message):
    function(rng(), hyperparameters, RANGES)


@pytest.mark.parametrize("text, message", [
  ("learning_rate", "expected NAME=LOW:HIGH"), ("learning_rate=1:b", "expected NAME=LOW:HIGH"),
  ("size=1:2", "'size' cannot be tuned; expected one of learning_rate, tau"),
  ("tau=5:2:linear", "expected LOW below HIGH"), ("tau=0:2", "above 0 without ':linear'"),
  ("tau=1:2:square", "or NAME=LOW:HIGH:linear"), ("tau=1:inf", "both finite"),
  ("tau=1:2,tau=1:3", "range 'tau=1:3': 'tau' has a range already")])
def test_wrong_ranges_are_refused(text, message):
  with pytest.raises(UserError) as error:
    parse_ranges(text.split(","), ("learning_rate", "tau"))
  assert message in str(error.value)


def test_ranges_of_a_command_line():
  assert parse_ranges(["learning_rate=1e-4:1e-2", "tau=5:20:linear"], ["learning_rate", "tau"]) == {
    "learning_rate": Range(1e-4, 1e-2), "tau": Range(5.0, 20.0, LINEAR)}
  assert parse_ranges([], ["tau"]) == {}
