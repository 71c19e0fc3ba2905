"""Names, parameters and errors of tasks."""

import sys

import jax
import numpy as np
import pytest

from starleague.companions.tasks import registry
from starleague.companions.tasks.registry import make_task, task_names
from starleague.companions.tasks.task import TaskError
from tests.companions.tasks import episodes


@pytest.mark.parametrize("name, message", [
  ("chess", "unknown task 'chess': names begin with ale or boxworld or bsuite or "),
  ("minatr-pong", "unknown task 'minatr-pong': names begin with minatar"),
  ("boxworld-hard", "unknown task 'boxworld-hard': did you mean boxworld?"),
  ("bsuite-katch", "unknown task 'bsuite-katch': did you mean bsuite-catch"),
  ("bsuite-xyzxyz", "unknown task 'bsuite-xyzxyz': did you mean bsuite-bandit or bsuite-bandit_n"),
  ("minatar-pong", "unknown task 'minatar-pong': did you mean minatar-"),
  ("bsuite-memory_len:lenght=3", "task 'bsuite-memory_len:lenght=3' has no parameter 'lenght': it "
                                 "has bits, length, limit, scale"),
  ("bsuite-memory_len:length=x", "task 'bsuite-memory_len:length=x': length is 'x'; expected a "
                                 "whole number from 1 to 2147483647, as length=10"),
  ("bsuite-memory_len:length=0", "task 'bsuite-memory_len:length=0': length is '0'; expected a "
                                 "whole number from 1 to 2147483647, as length=10"),
  ("minatar-breakout:limit=2147483648", "task 'minatar-breakout:limit=2147483648': limit is "
                                        "'2147483648'; expected a whole number from 1 to "
                                        "2147483647, as limit=5000"),
  (f"bsuite-catch:limit={'9' * 5000}", "task 'bsuite-catch:limit=9999999999"),
  ("bsuite-memory_len:length", "task 'bsuite-memory_len:length': length is ''; expected"),
  ("bsuite-catch:scale=inf", "task 'bsuite-catch:scale=inf': scale is 'inf'; expected a finite "
                             "number, as scale=1.0"),
  ("minatar-breakout:minimal=5", "task 'minatar-breakout:minimal=5': minimal is '5'; expected True "
                                 "or False, as minimal=True"),
  ("jaxmarl-switch_riddle:agents=2", "task 'jaxmarl-switch_riddle:agents=2': jaxmarl refuses the "
                                     "parameters: AssertionError: The minimum number of agents"),
])
def test_bad_names_are_refused_in_one_line(name, message):
  with pytest.raises(TaskError) as caught:
    make_task(name, copies=2)
  assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


def test_no_copies_are_refused():
  with pytest.raises(TaskError, match="task 'bsuite-catch': 0 copies; expected at least 1"):
    make_task("bsuite-catch", copies=0)


@pytest.mark.parametrize("name, package", [("minatar-breakout", "pgx"), ("bsuite-catch", "bsuite")])
def test_a_missing_package_is_named_with_the_command(monkeypatch, name, package):
  for module in [each for each in sys.modules if each.partition(".")[0] == package
                 or each.startswith("starleague.companions.tasks.")]:
    monkeypatch.delitem(sys.modules, module)
  monkeypatch.setitem(sys.modules, package, None)
  monkeypatch.delattr("starleague.companions.tasks.bsuite", raising=False)
  monkeypatch.delattr("starleague.companions.tasks.minatar", raising=False)
  with pytest.raises(TaskError, match=f"^task '{name}' needs the package '{package}', which is not "
                                      r"installed: pip install 'starleague\[companions\]'$"):
    registry.make_task(name, copies=2)


def test_scale_multiplies_rewards():
  plain, scaled = (episodes.play(make_task(f"bsuite-catch:{more}", copies=4), 30).steps
                   for more in ("limit=0", "scale=-2.5"))
  assert np.abs(plain.reward).sum() > 0
  episodes.assert_same(plain._replace(reward=-2.5 * plain.reward), scaled)
  rewards = []
  for more in ("limit=0", "scale=-2.5"):
    host = make_task(f"bsuite-catch:{more}", copies=4).host
    host.reset(np.arange(4))
    rewards.append(np.stack([host.step(np.ones(4, int)).reward for _ in range(30)]))
    assert rewards[-1].dtype == np.float32
  assert np.abs(rewards[0]).sum() > 0
  np.testing.assert_array_equal(-2.5 * rewards[0], rewards[1])


@pytest.mark.parametrize("text, names", [
  ("", []), ("boxworld", ["boxworld"]), ("a:scale=1e+3", ["a:scale=1e+3"]),
  ("a:scale=1e+3+b-c:x=2+d", ["a:scale=1e+3", "b-c:x=2", "d"])])
def test_names_are_split_between_tasks(text, names):
  assert registry.split_names(text) == names


@pytest.mark.parametrize("name, depends", [
  ("bsuite-deep_sea:size=4,scale=2", True), ("bsuite-catch", False), ("minatar-breakout", False),
  ("bsuite-catch+bsuite-deep_sea:size=4", True), ("bsuite-catch+bsuite-catch:scale=2", False)])
def test_the_seed_decides_some_tasks(name, depends):
  assert registry.depends_on_seed(name) == depends
  if name.count("+") == 0:
    assert make_task(name, 2, seed=5).seed == (5 if depends else None)


def test_a_joined_task_has_the_seed_of_its_parts():
  names = "bsuite-deep_sea:size=4", "bsuite-deep_sea:size=5"
  assert make_task("+".join(names), 2, seed=5).seed == 5


def test_a_scale_may_have_an_exponent_with_a_sign():
  task = make_task("bsuite-catch:scale=1e+3", copies=4)
  assert (task.name, task.parts) == ("bsuite-catch:scale=1e+3", ())
  assert set(np.unique(episodes.play(task, 30).steps.reward)) == {-1000.0, 0.0, 1000.0}


def test_names_of_a_family():
  assert task_names("minatar") == tuple(f"minatar-{game}" for game in (
    "asterix", "breakout", "freeway", "seaquest", "space_invaders"))
  with pytest.raises(TaskError, match="unknown family of tasks 'go': choose one of "):
    task_names("go")


def test_a_task_has_its_name_and_copies():
  task = make_task("bsuite-memory_size:bits=4", copies=5)
  assert (task.name, task.copies, task.num_actions) == ("bsuite-memory_size:bits=4", 5, 2)
  assert task.observation == jax.ShapeDtypeStruct((1, 6), np.float32)
