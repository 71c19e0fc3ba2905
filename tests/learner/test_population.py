"""Population-based training: the store with several workers, and a toy problem."""

import math
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from starleague.learner.evolution import (
  LINEAR,
  Range,
  sample,
  t_selection,
  truncation_selection,
)
from starleague.learner.population import Change, Exploit, Population
from tests.processes import start_together

RANGES = {"learning_rate": Range(1e-5, 1e-1), "entropy": Range(-1., 3., LINEAR)}


def rng(*seed):
  return np.random.default_rng(seed or 0)


def saved(directory, name, step=0):
  """Writes a checkpoint as a worker does: under another name, renamed when complete."""
  path = Path(directory) / f"{name}-{step}.npy"
  partial = path.with_suffix(".partial")
  with partial.open("wb") as file:
    np.save(file, step)
  os.replace(partial, path)
  return path


@pytest.fixture
def population(tmp_path):
  opened = Population(tmp_path / "runs" / "population.sqlite", "toy", RANGES, interval=10)
  yield opened
  opened.close()


@pytest.mark.parametrize("change, message", [
  ({"ranges": {}}, "ranges: expected at least one"),
  ({"ranges": {"x": Range(0., 1.)}}, "'x': expected finite low < high and low > 0, found 0.0"),
  ({"ranges": {"x": Range(2., 1., LINEAR)}}, "'x': expected finite low < high, found 2.0 and 1.0"),
  ({"ranges": {"x": Range(1., math.inf)}}, "'x': expected finite low < high"),
  ({"ranges": {"x": Range(1., 2., "square")}}, "expected scale 'log' or 'linear', found 'square'"),
  ({"interval": 0}, "interval: expected at least 1, found 0"),
  ({"window": 0}, "window: expected at least 1, found 0"),
])
def test_invalid_arguments_are_refused_before_a_file_is_created(tmp_path, change, message):
  arguments = {"ranges": RANGES, "interval": 10, **change}
  with pytest.raises(ValueError, match=message):
    Population(tmp_path / "p.sqlite", "toy", **arguments)
  assert not list(tmp_path.iterdir())


def test_a_file_keeps_the_choices_of_its_first_opening_that_has_some(population):
  path = population.path
  Population(path, "toy", RANGES, 10, choices={"size": 4, "rule": "best"}).close()
  Population(path, "toy", RANGES, 10, choices={"rule": "best", "size": 4}).close()
  for choices, message in (({"size": 5, "rule": "best"}, "expected size 5, found 4. Open it as"),
                           ({"size": 4}, "expected rule None, found 'best'"),
                           (None, "expected rule None, found 'best'")):
    with pytest.raises(ValueError, match=message):
      Population(path, "toy", RANGES, 10, choices=choices)


def test_members_join_once_with_draws_from_the_prior(population):
  member = population.join(rng(7), "a")
  assert member == ("a", 0, sample(rng(7), RANGES), (), None)
  assert population.join(rng(8), "a") == member
  assert population.history() == [Change("a", 0, None, member.hyperparameters)]


def test_reports_keep_a_window_and_may_be_repeated(population, tmp_path):
  population.join(rng(), "a")
  for step in range(0, 6):
    population.report("a", step, [step, step + .5], saved(tmp_path, "a", step))
  member, = population.members()
  assert member.evaluations == (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5)
  assert (member.step, member.checkpoint) == (5, tmp_path / "a-5.npy")
  population.report("a", 5, [9.], saved(tmp_path, "a", 5))
  assert population.members()[0].evaluations == (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 9)


@pytest.mark.parametrize("change, error, message", [
  ({"values": [1., math.nan]}, ValueError, "member 'a' at step 20: expected one or more finite"),
  ({"values": []}, ValueError, r"expected one or more finite evaluations, found \[\]"),
  ({"member": "b"}, ValueError, r"found 'b'. The population has \['a'\]"),
  ({"step": 5}, ValueError, "member 'a': expected a report of step 10 or later, found 5"),
  ({"checkpoint": "nowhere"}, FileNotFoundError, "expected a checkpoint at .*nowhere, found noth"),
])
def test_reports_are_validated_before_anything_changes(population, tmp_path, change, error,
                                                       message):
  population.join(rng(), "a")
  path = saved(tmp_path, "a")
  population.report("a", 10, [1.], path)
  before = population.members()
  with pytest.raises(error, match=message):
    population.report(**{"member": "a", "step": 20, "values": [1.], "checkpoint": path, **change})
  assert population.members() == before


def test_exploit_then_adopt(population, tmp_path):
  a, b = population.join(rng(1), "a"), population.join(rng(2), "b")
  population.report("a", 10, [1., 2., 3.], saved(tmp_path, "a", 10))
  population.report("b", 12, [5., 6., 7.], saved(tmp_path, "b", 12))
  assert population.decide(rng(), "b") is None
  exploit = population.decide(rng(3), "a")
  assert (exploit.source, exploit.checkpoint) == ("b", tmp_path / "b-12.npy")
  for name, value in b.hyperparameters.items():
    assert exploit.hyperparameters[name] in (value * .8, value * 1.2)
  # Until it is adopted, a restarted worker resumes as before.
  assert Population(population.path, "toy", RANGES, 10).members()[0] == a._replace(
    step=10, evaluations=(1., 2., 3.), checkpoint=tmp_path / "a-10.npy")
  copied = saved(tmp_path, "a", 11)
  assert population.adopt("a", exploit, copied) == (
    "a", 10, exploit.hyperparameters, (), copied)
  assert population.history()[-1] == Change("a", 10, "b", exploit.hyperparameters)
  assert population.members()[1].evaluations == (5., 6., 7.)


def test_a_member_is_ready_once_an_interval(population, tmp_path):
  for name, values in (("a", [1., 2.]), ("b", [50., 51.])):
    population.join(rng(), name)
    population.report(name, 9, values, saved(tmp_path, name))
  ready = []
  for step in range(9, 28):
    population.report("a", step, [1., 2.], saved(tmp_path, "a"))
    if population.decide(rng(), "a"):
      ready.append(step)
  assert ready == [10, 20]


def test_adopt_refuses_invalid_arguments(population, tmp_path):
  population.join(rng(), "a")
  path = saved(tmp_path, "a")
  good = {"learning_rate": .01, "entropy": 0.}
  with pytest.raises(ValueError, match="'entropy': expected -1.0 to 3.0, found 4.0"):
    population.adopt("a", Exploit("b", path, good | {"entropy": 4.}), path)
  with pytest.raises(FileNotFoundError, match="member 'a': expected a checkpoint at"):
    population.adopt("a", Exploit("b", path, good), tmp_path / "nowhere")
  assert len(population.history()) == 1


def test_a_removed_checkpoint_is_not_copied(population, tmp_path):
  for name, values in (("a", [1., 2.]), ("b", [50., 51.])):
    population.join(rng(), name)
    population.report(name, 10, values, saved(tmp_path, name))
  (tmp_path / "b-0.npy").unlink()
  assert population.decide(rng(), "a") is None


def test_a_second_join_excludes_the_first_worker(population, tmp_path):
  population.join(rng(), "a")
  path = saved(tmp_path, "a")
  population.report("a", 10, [1.], path)
  successor = Population(population.path, "toy", RANGES, 10)
  assert successor.join(rng(), "a").checkpoint == path
  with pytest.raises(ValueError, match="member 'a' was joined 2 times; expected 1 times"):
    population.report("a", 11, [1.], path)
  successor.report("a", 11, [2.], path)
  with pytest.raises(ValueError, match=r"that this worker joined, of \[\], found 'a'"):
    Population(population.path, "toy", RANGES, 10).decide(rng(), "a")


def test_dead_workers_do_not_hold_the_bottom_ranks(tmp_path):
  population = Population(tmp_path / "p.sqlite", "toy", RANGES, interval=1,
                          select=truncation_selection, patience=3)
  names = [f"{i}" for i in range(10)]
  for i, name in enumerate(names):
    population.join(rng(), name)
    population.report(name, 0, [float(i)], saved(tmp_path, name))
  copied = []
  for step in range(1, 8):  # 0 and 1, the worst, died
    for i, name in enumerate(names[2:], start=2):
      population.report(name, step, [float(i)], saved(tmp_path, name))
      if exploit := population.decide(rng(step), name):
        copied.append((step, name, exploit.source in names[-2:]))
  # Ignored after 3 * 10 reports, in the fourth round; then the bottom is one of eight.
  assert copied == [(step, "2", True) for step in range(4, 8)]
  population.close()


@pytest.mark.parametrize("name, ranges, message", [
  ("other", RANGES, "expected population 'other', found 'toy'"),
  ("toy", {"learning_rate": Range(1e-5, 1e-1)}, "for the hyperparameter 'entropy' None, found Ran"),
  ("toy", RANGES | {"learning_rate": Range(1e-5, 1.)},
   r"'learning_rate' Range\(low=1e-05, high=1.0, scale='log'\), found Range\(low=1e-05, high=0.1"),
])
def test_a_file_of_another_population_is_refused(population, name, ranges, message):
  with pytest.raises(ValueError, match=message):
    Population(population.path, name, ranges, 10)


def test_a_file_of_something_else_is_refused(tmp_path, population):
  text = tmp_path / "text"
  text.write_text("this is no database, and long enough to be read as a header" * 20)
  with pytest.raises(ValueError, match="text is not a SQLite database"):
    Population(text, "toy", RANGES, 10)
  league = tmp_path / "league.sqlite"
  with sqlite3.connect(league) as connection:
    connection.execute("CREATE TABLE results (id TEXT)")
  with pytest.raises(ValueError, match=r"expected a population alone, found \['results'\]"):
    Population(league, "toy", RANGES, 10)
  with sqlite3.connect(population.path) as connection:
    connection.execute("UPDATE layout SET version = 99")
  with pytest.raises(ValueError, match="tables of population of version 2, found version 99"):
    Population(population.path, "toy", RANGES, 10)


def test_threads_share_one_population(population, tmp_path):
  def work(name):
    population.join(rng(), name)
    for step in range(10):
      population.report(name, step, [step], saved(tmp_path, name))
  threads = [threading.Thread(target=work, args=(str(i),)) for i in range(4)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(timeout=60)
  assert [member.evaluations for member in population.members()] == [tuple(range(10))] * 4


def _work(directory, name, number, value, started):
  """Reports, decides and adopts `number` times without waiting."""
  population = Population(directory / "p.sqlite", "toy", RANGES, interval=5, window=10_000,
                          select=truncation_selection, patience=10_000)
  population.join(rng(int(value)), name)
  started.set()
  for step in range(1, number + 1):
    population.report(name, step, [value, value], saved(directory, name, step))
    if exploit := population.decide(rng(step), name):
      assert np.load(exploit.checkpoint) > 0
      population.adopt(name, exploit, saved(directory, f"{name}-copied", step))


def _reports(path):
  with sqlite3.connect(path) as connection:
    return connection.execute("SELECT reports FROM population").fetchone()[0]


def test_processes_lose_no_report_and_survive_the_kill_of_one(tmp_path):
  """Three processes create and share the file; the worst of them is killed."""
  victim, *others = start_together(_work, [
    (tmp_path, "victim", 100_000, 0.), (tmp_path, "one", 80, 1.), (tmp_path, "two", 80, 1.)])
  population = Population(tmp_path / "p.sqlite", "toy", RANGES, interval=5, window=10_000)
  deadline = time.monotonic() + 120
  while len(population.history()) < 5 and time.monotonic() < deadline:  # three join, two copy
    time.sleep(.01)
  os.kill(victim.pid, signal.SIGKILL)
  for process, code in ((victim, -signal.SIGKILL), (others[0], 0), (others[1], 0)):
    process.join(120)
    assert process.exitcode == code
  one, two, dead = population.members()
  assert one.evaluations == two.evaluations == (1.,) * 160
  assert _reports(population.path) == 160 + dead.step
  assert np.load(dead.checkpoint) == dead.step  # the named checkpoint exists and is complete
  copies = [change for change in population.history() if change.source]
  assert len(copies) >= 2 and {change.member for change in copies} == {"victim"}
  assert dead.hyperparameters == copies[-1].hyperparameters
  # Its successor resumes from there.
  again = population.join(rng(), "victim")
  assert again == dead
  population.report("victim", dead.step, [0.], saved(tmp_path, "victim", dead.step))
  assert _reports(population.path) == 161 + dead.step


# The toy: 50 parameters of curvature 1 and 50 of 0.01 start at 100; gradients have noise of
# variance 1. High rates are needed to get the flat ones near, low ones to settle: no one rate is
# good at both. The best of a population is compared at equal numbers of gradients.
_CURVATURE = np.repeat([1., .01], 50)
_TOY = {"learning_rate": Range(1e-5, 10.)}
_MEMBERS, _ROUNDS, _STEPS = 10, 40, 100


def _descend(generator, parameters, rate):
  """Computes _STEPS of noisy gradient descent: [..., 100] parameters, [..., 1] rates.

  A step is x <- (1 - rate * curvature) * x - rate * noise: after many x is normal, with a mean and
  a variance that are geometric sums.
  """
  shrink = 1 - rate * _CURVATURE
  variance = rate ** 2 * (1 - shrink ** (2 * _STEPS)) / (1 - shrink ** 2)
  noise = generator.standard_normal(parameters.shape)
  # Rates above 2 diverge.
  return np.clip(shrink ** _STEPS * parameters + np.sqrt(variance) * noise, -1e4, 1e4)


def _loss(parameters):
  return np.mean(_CURVATURE * parameters ** 2, axis=-1)


def _train_population(directory, seed, select=t_selection, rounds=_ROUNDS):
  """Trains serially, to be reproducible; each report is ten noisy values of -log10(loss)."""
  population = Population(directory / "toy.sqlite", "toy", _TOY, _STEPS, select)
  generators = [rng(seed, i) for i in range(_MEMBERS)]
  names = [f"m{i}" for i in range(_MEMBERS)]
  members = [population.join(*pair) for pair in zip(generators, names, strict=True)]
  parameters = [np.full(100, 100.)] * _MEMBERS
  for step in range(_STEPS, (rounds + 1) * _STEPS, _STEPS):
    for i, (generator, name) in enumerate(zip(generators, names, strict=True)):
      rate = members[i].hyperparameters["learning_rate"]
      parameters[i] = _descend(generator, parameters[i], rate)
      path = directory / f"{name}-{step}.npy"
      np.save(path, parameters[i])
      evaluations = -np.log10(_loss(parameters[i])) + .05 * generator.standard_normal(10)
      population.report(name, step, evaluations, path)
      if exploit := population.decide(generator, name):
        parameters[i] = np.load(exploit.checkpoint)
        np.save(path, parameters[i])
        members[i] = population.adopt(name, exploit, path)
  found = population.members(), population.history(), np.array([_loss(x) for x in parameters])
  population.close()
  return found


def _train_apart(generator, rates):
  """Returns the losses of fixed rates after the same number of steps."""
  rates = np.asarray(rates)[:, None]
  parameters = np.full((len(rates), 100), 100.)
  for _ in range(_ROUNDS):
    parameters = _descend(generator, parameters, rates)
  return _loss(parameters)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("select", [t_selection, truncation_selection])
def test_population_beats_random_search_and_fixed_learning_rates(tmp_path, seed, select):
  members, history, losses = _train_population(tmp_path, seed, select)
  # Random search keeps the initial rates of the members.
  drawn = [change.hyperparameters["learning_rate"] for change in history if not change.source]
  random_search = _train_apart(rng(seed, 99), drawn).min()
  assert losses.min() < .6 * random_search
  assert losses.max() < random_search  # every member, not only the luckiest
  # Better than the best fixed rate, of 16 around the optimum 0.11.
  assert losses.min() < .8 * _train_apart(rng(seed, 98), np.geomspace(.03, .5, 16)).min()
  # The schedule found ends below the best fixed rate.
  best = members[int(losses.argmin())].hyperparameters["learning_rate"]
  assert .005 < best < .09


def test_a_seeded_serial_run_repeats(tmp_path):
  runs = []
  for name in ("first", "second"):
    (tmp_path / name).mkdir()
    members, history, losses = _train_population(tmp_path / name, 5, rounds=6)
    runs.append(([member._replace(checkpoint=None) for member in members], history,
                 losses.tolist()))
  assert runs[0] == runs[1]
  assert any(change.source for change in runs[0][1])
