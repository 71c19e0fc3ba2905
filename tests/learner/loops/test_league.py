"""Turns of a league's learners."""

import contextlib
import threading
import time
from types import SimpleNamespace
from unittest import mock

import jax
import numpy as np
import pytest

from starleague.common import results, run_files
from starleague.common.errors import UserError
from starleague.league.players import initial_players
from starleague.learner import train_state, update
from starleague.learner.evolution import Range
from starleague.learner.loops import league, league_population, reinforcement_setup
from starleague.learner.loops.options import LearnerProcess, PopulationOptions
from tests.learner.loops.options import reinforcement_options


def player_of(name: str, step: int, ready: bool):
  return SimpleNamespace(name=name, step=step, batches=SimpleNamespace(ready=ready))


def test_the_player_with_a_batch_and_the_fewest_updates_is_next():
  players = [player_of("a", 3, False), player_of("b", 9, True), player_of("c", 5, True)]
  assert league.next_ready(players).name == "c"


def test_players_that_do_not_learn_are_refused_before_any_file_is_written(tmp_path, monkeypatch):
  monkeypatch.setattr(league.stopping, "end_at_once", lambda: None)
  client = SimpleNamespace(players=lambda: initial_players(["terran"]))
  learning = [player.name for player in client.players() if player.learns]
  assert league._trained_names(client.players(), []) == learning
  assert league._trained_names(client.players(), learning[1:2]) == learning[1:2]
  for name in ("terran-main-0-0000", "terran-mian-0"):
    with pytest.raises(UserError, match=f"expected some of terran-main-0, .*, found {name}$"):
      league.learn(None, reinforcement_options(), LearnerProcess(tmp_path, "", 0.0), client, [name])
  assert not list(tmp_path.iterdir())


def test_no_player_is_waited_for():
  assert league.next_ready([player_of("a", 3, False)]) is None


def test_turns_end_at_the_updates_of_all_players_together(tmp_path):
  """Resumed at 5 and 3 updates; the player with fewer goes first."""
  class Player(SimpleNamespace):
    def advance(self):
      self.step += 1
      return True

  players = [Player(name=f"{step}", step=step, steps=0, trained_seconds=0.0,
                    batches=SimpleNamespace(ready=True)) for step in (5, 3)]
  options = reinforcement_options(updates=12)
  league._take_turns(players, None, options, tmp_path, threading.Event(), None)
  assert [player.step for player in players] == [6, 6]


def test_turns_end_at_the_updates_of_the_main_agent(tmp_path):
  """Resumed at 5 updates of the main agent and 3 of its exploiter, which catches up first."""
  class Player(SimpleNamespace):
    def advance(self):
      self.step += 1
      return True

  players = [Player(name=name, step=step, steps=0, trained_seconds=0.0,
                    batches=SimpleNamespace(ready=True))
             for name, step in (("main", 5), ("exploiter", 3))]
  options = reinforcement_options(main_updates=8)
  league._take_turns(
    players, None, options, tmp_path, threading.Event(), None, mains={"main"})
  assert [player.step for player in players] == [8, 7]


def test_main_agents_that_have_their_updates_drop_their_batches(tmp_path):
  """The actors of a slow main agent give batches while the tables of all others are read."""
  written = [0]

  class Player(SimpleNamespace):
    @property
    def unread(self):
      return written[0] // self.period - self.step - self.dropped

    @property
    def batches(self):
      # The actor writes for all players in one stream: a table that is full stops it.
      written[0] += all(player.unread < 4 for player in players)
      return SimpleNamespace(ready=self.unread > 0)

    def advance(self):
      self.step += 1
      return True

    def skip(self):
      self.dropped += 1
      return True

  players = [Player(name=name, step=0, dropped=0, steps=0, trained_seconds=0.0, period=period)
             for name, period in (("fast", 1), ("slow", 3), ("exploiter", 2))]
  options = reinforcement_options(main_updates=30, timeout_s=5.0)
  league._take_turns(players, None, options, tmp_path, threading.Event(), None,
                     mains={"fast", "slow"})
  fast, slow, exploiter = players
  assert (fast.step, slow.step, slow.dropped, exploiter.dropped) == (30, 30, 0, 0)
  assert fast.dropped > 50 and exploiter.step > 40  # 90 batches of the actor


def test_a_dropped_batch_changes_nothing():
  player = SimpleNamespace(batches=iter(["batch"]), step=8)
  assert league.PlayerLearner.skip(player) and player.step == 8
  assert not league.PlayerLearner.skip(player)  # the data have ended


@pytest.mark.parametrize("changed", [
  {"updates": 8}, {"main_updates": 5}, {"league_seconds": 50.0}])
def test_a_league_that_is_over_has_no_turn(changed, tmp_path):
  """Resumed at 5 updates of the main agent, 3 of its exploiter, and 50 s."""
  players = [SimpleNamespace(name=name, step=step, steps=0, trained_seconds=50.0,
                             batches=SimpleNamespace(ready=True))  # `advance` is missing
             for name, step in (("main", 5), ("exploiter", 3))]
  league._take_turns(players, None, reinforcement_options(**changed), tmp_path,
                     threading.Event(), None, mains={"main"})
  assert [player.step for player in players] == [5, 3]


def test_turns_end_when_the_data_do(tmp_path):
  """A stop ends the data first: a player is ready, and has no batch."""
  player = SimpleNamespace(name="main", step=3, steps=0, trained_seconds=0.0,
                           batches=SimpleNamespace(ready=True), advance=lambda: False)
  league._take_turns(
    [player], None, reinforcement_options(), tmp_path, threading.Event(), None)
  ended = SimpleNamespace(batches=iter(()))
  assert league.PlayerLearner.advance(ended) is False


def test_an_update_of_a_player_is_checked_logged_and_published():
  calls, batches, values = mock.Mock(), mock.MagicMock(), {"loss": float("nan")}
  calls.learner.configure_mock(state="state", teacher="teacher", factors="factors")
  calls.learner.update.return_value = ("new", values)
  batches.__next__.return_value, batches.waiting.return_value = "batch", 0.25
  player = SimpleNamespace(learner=calls.learner, batches=batches, step=2, _watch=calls.watch,
                           _duties=calls.duties, _save=calls.save)
  assert league.PlayerLearner.advance(player) and player.step == 3
  call = mock.call
  assert calls.mock_calls == [
    call.learner.update("state", "batch", "teacher", "factors"), call.learner._replace(state="new"),
    call.watch.check(values, "batch"), call.duties.log(3, values, 0.25),
    call.duties.publish("new", 3), call.save()]


def test_a_player_without_batches_publishes_its_parameters_again():
  """A data server that was restarted has none, and actors would wait for them."""
  calls = []
  player = SimpleNamespace(
    name="main", policy_steps=64, step=2, learner=SimpleNamespace(state="state"),
    _save=lambda waiting: calls.append(("save", waiting)),
    _duties=SimpleNamespace(publish=lambda state, step: calls.append((state, step))))
  client = SimpleNamespace(set_steps=lambda name, steps: calls.append((name, steps)),
                           orders=lambda name: [])
  league.PlayerLearner.execute_orders(player, client)
  assert calls == [("main", 64), ("state", 2), ("save", True)]  # if it is due


def test_a_reset_policy_is_published_before_its_order_is_completed(tmp_path, monkeypatch):
  """The completed order clears the scores: no later game may be of the former policy."""
  log = []
  player = object.__new__(league.PlayerLearner)
  player.name, player.step, player._agent, player._stop = "main", 9, None, "stop"
  player._options = reinforcement_options(value_warm_up=0)
  player._process = SimpleNamespace(run_dir=tmp_path)
  player.learner = SimpleNamespace(state="former")
  player._apply = lambda: None
  player._save = lambda now=False, waiting=False: log.append(("save", now))
  player._duties = SimpleNamespace(
    publish=lambda state, step: None,
    publish_now=lambda state, step, stop: log.append(("publish", state, step, stop)))
  monkeypatch.setattr(league.reinforcement_setup, "reset",
                      lambda *arguments: SimpleNamespace(state="reset"))
  monkeypatch.setattr(league, "RunCopy", lambda *arguments: SimpleNamespace(
    fetch=lambda name: True, send=lambda name: log.append(("send", name))))
  client = SimpleNamespace(
    set_steps=lambda name, steps: None, complete=lambda order: log.append(("complete", order)),
    orders=lambda name: [SimpleNamespace(id=4, snapshot="main-0001", reset=True)])
  player.execute_orders(client)
  assert log == [("save", False), ("send", run_files.snapshot_name("main-0001")), ("save", True),
                 ("publish", "reset", 9, "stop"), ("complete", 4)]


@pytest.mark.parametrize("step, steps", [(1, 0), (60, 0), (61, 512), (100, 20_480)])
def test_snapshots_count_the_steps_after_the_warm_up(step, steps):
  options = reinforcement_options(value_warm_up=60, batch_size=32, unroll_length=16)
  player = SimpleNamespace(step=step, _options=options)
  assert league.PlayerLearner.policy_steps.fget(player) == steps


def test_the_time_of_a_league_counts_from_its_first_update(tmp_path, monkeypatch):
  """The first batch comes 100 s after the start, and the league has 50 s."""
  now = [0.0]
  monkeypatch.setattr(time, "monotonic", lambda: now[0])
  stop = SimpleNamespace(is_set=lambda: False,
                         wait=lambda seconds: now.__setitem__(0, now[0] + 10.0))

  class Player(SimpleNamespace):
    @property
    def batches(self):
      return SimpleNamespace(ready=now[0] >= 100.0)

    def advance(self):
      now[0] += 10.0
      return True

    def execute_orders(self, client):
      pass

  player = Player(name="main", step=0, steps=0, trained_seconds=0.0)
  options = reinforcement_options(league_seconds=50.0)
  league._take_turns([player], None, options, tmp_path, stop, None)
  assert now[0] == 150.0 and player.trained_seconds == 50.0


def test_a_learner_that_began_later_ends_with_the_others(tmp_path, monkeypatch):
  """Another learner has trained for 38 s at 5 s of this one, then is killed: the time goes on."""
  now, answers = [100.0], iter([0.0, 38.0])
  monkeypatch.setattr(time, "monotonic", lambda: now[0])
  asked = []

  def league_time(seconds):
    asked.append(seconds)
    return max(seconds, next(answers, 0.0))

  def advance():
    now[0] += 5.0
    return True

  player = SimpleNamespace(name="main", step=0, steps=0, trained_seconds=0.0, advance=advance,
                           batches=SimpleNamespace(ready=True), execute_orders=lambda client: None)
  options = reinforcement_options(league_seconds=50.0)
  league._take_turns([player], None, options, tmp_path, threading.Event(), None, (), league_time)
  assert asked == [0.0, 5.0, 43.0, 48.0, 53.0] and player.trained_seconds == 53.0


def test_a_learner_that_begins_after_the_end_has_no_turn(tmp_path):
  player = SimpleNamespace(name="main", step=0, steps=0, trained_seconds=0.0,
                           batches=SimpleNamespace(ready=True))  # `advance` is missing
  league._take_turns(
    [player], None, reinforcement_options(league_seconds=50.0), tmp_path, threading.Event(), None,
    (), lambda seconds: 50.0)
  assert player.step == 0


def test_the_batches_of_all_players_end_before_any_is_waited_for(tmp_path, monkeypatch):
  """Each wait for a thread inside Reverb takes its whole deadline."""
  log = []

  class Player:
    def __init__(self, name, *rest):
      self.name, self.learner = name, None

    def open(self, stack, stop):
      stack.callback(log.append, f"closed {self.name}")

    def end_batches(self):
      log.append(f"ended {self.name}")

    def close(self):
      log.append(f"saved {self.name}")

  monkeypatch.setattr(league, "PlayerLearner", Player)
  monkeypatch.setattr(league, "_share_initial", lambda agent, run: None)
  monkeypatch.setattr(league, "_take_turns", lambda *arguments: log.append("turns"))
  monkeypatch.setattr(league.reinforcement_setup, "compile_ahead", lambda *arguments: None)
  monkeypatch.setattr(league.stopping, "end_at_once", lambda: None)
  monkeypatch.setattr(league.stopping, "stop_event", threading.Event)
  client = SimpleNamespace(
    close=lambda: log.append("client"), training_time=None,
    players=lambda: [SimpleNamespace(name=name, learns=True, kind="main") for name in "ab"])
  process = SimpleNamespace(run_dir=tmp_path)
  assert league.learn(None, reinforcement_options(), process, client, ["a", "b"])
  assert log == ["turns", "ended a", "ended b", "closed b", "closed a", "saved a", "saved b",
                 "client"]


def test_a_player_alone_is_never_starved(monkeypatch):
  """The other players continue while it is paused; only a missing server has a deadline."""
  opened = []
  monkeypatch.setattr(league.sampler, "Dataset", lambda *arguments, **options: opened.append(
    (arguments[-1], options["starved_s"])) or contextlib.nullcontext("data"))
  monkeypatch.setattr(league.prefetch, "prefetch",
                      lambda data, place, timeout: contextlib.nullcontext(f"batches of {data}"))
  player = object.__new__(league.PlayerLearner)
  player.name, player._options = "main", reinforcement_options(timeout_s=300.0)
  player._process, player._agent = SimpleNamespace(address=""), SimpleNamespace(config=None)
  player.learner = SimpleNamespace(update=SimpleNamespace(place=None))
  player.end_batches = lambda: None
  with contextlib.ExitStack() as stack:
    player.open(stack, threading.Event())
  assert opened == [(300.0, float("inf"))] and player.batches == "batches of data"


class Duties:
  """Remembers what is saved and published."""

  def __init__(self):
    self.saved, self.published = [], []

  def save(self, state, step, trained, now=False, waiting=False, extra=None):
    self.saved.append((state, step, now, extra))

  def publish_now(self, state, step, stop):
    self.published.append((step, stop))

  def publish(self, state, step):
    pass


def member_of(folder, name, seed, step, rate):
  """A player of a population with two parameters, after `step` updates."""
  def loss(params, key, batch, teacher, factors):
    return params["w"].sum(), {}

  optimizer = train_state.make_optimizer(rate, adjustable=True)
  host = train_state.initial_state(
    {"w": np.full(2, seed, np.float32)}, optimizer, jax.random.key(seed))
  made = update.make_update(loss, optimizer)
  found = object.__new__(league.PlayerLearner)
  found.name, found.step, found.trained_seconds = name, step, 0.0
  found.member = league_population.Member({"learning_rate": rate, "entropy": 0.02}, 1)
  found.learner = reinforcement_setup.Learner(
    made, made.replicate(host._replace(step=np.int32(step))), (), 0.0)
  found._options = reinforcement_options(population=POPULATION)
  found._process = SimpleNamespace(origin=0.0)
  found._duties, found._folder, found._stop = Duties(), folder / name, "stop"
  return found


POPULATION = PopulationOptions({"learning_rate": Range(1e-4, 1.0), "entropy": Range(1e-3, 1.0)},
                               {"learning_rate": 0.1, "entropy": 0.01}, 100.0)


def test_a_copy_has_the_others_weights_and_its_own_steps_and_key(tmp_path):
  worse, better = (member_of(tmp_path, *each) for each in (
    ("worse", 3, 7, 0.1), ("better", 5, 9, 0.2)))
  decision = league_population.Decision("better", {"learning_rate": 0.16, "entropy": 0.024})
  worse.adopt(better, decision, 0.25)
  state = update.unreplicate(worse.learner.state)
  np.testing.assert_array_equal(state.params["w"], [5.0, 5.0])
  assert state.step == 7 and jax.random.key_data(state.key).tolist() == [0, 3]
  np.testing.assert_allclose(state.opt_state.hyperparams["learning_rate"], 0.16)
  np.testing.assert_allclose(jax.tree.map(lambda x: x[0], worse.learner.factors), (2.4, 1.0))
  ((_, step, now, extra),) = worse._duties.saved
  assert (step, now, worse._duties.published) == (7, True, [(7, "stop")])
  assert extra == {"population": {"hyperparameters": decision.hyperparameters, "decisions": 1}}
  assert league_population.restored(POPULATION, extra["population"]) == worse.member
  rows = {row.tag: (row.update, row.value)
          for row in results.read(tmp_path / "worse" / results.FILE_NAME)}
  assert rows == {"population/learning_rate": (7, 0.16), "population/entropy": (7, 0.024),
                  "copied/better": (7, 0.25)}
  np.testing.assert_array_equal(update.unreplicate(better.learner.state).params["w"], [5.0, 5.0])


def test_a_restored_member_has_the_hyperparameters_of_its_checkpoint(tmp_path, monkeypatch):
  """A new one draws its own, and one without a group has the config's."""
  stored = {"hyperparameters": {"learning_rate": 0.03, "entropy": 0.02}, "decisions": 4}
  made = member_of(tmp_path, "any", 3, 7, 0.1).learner
  found = {"new": made, "restored": made._replace(extra={"population": stored}), "alone": made}
  monkeypatch.setattr(league.checkpoints, "Checkpoints", lambda *arguments: None)
  monkeypatch.setattr(league.chief, "ChiefDuties", lambda *arguments: Duties())
  monkeypatch.setattr(league.reinforcement_setup, "make_guard", lambda *arguments: None)
  options, players = reinforcement_options(population=POPULATION, seed=6), {}
  for name, number in (("new", 2), ("restored", 2), ("alone", None)):
    monkeypatch.setattr(league.reinforcement_setup, "make_learner",
                        lambda *arguments, name=name: found[name])
    players[name] = league.PlayerLearner(
      name, SimpleNamespace(config=None), options, LearnerProcess(tmp_path, "", 0.0), None, number)
  assert players["restored"].member == league_population.Member(stored["hyperparameters"], 4)
  assert players["new"].member == league_population.first(POPULATION, 6, 2)
  assert players["alone"].member is None
  rates = {name: float(player.learner.state.opt_state.hyperparams["learning_rate"][0])
           for name, player in players.items()}
  drawn = players["new"].member.hyperparameters
  assert rates == pytest.approx({
    "new": drawn["learning_rate"], "restored": 0.03, "alone": 0.1}, rel=1e-6)
  entropies = {name: float(player.learner.factors.entropy[0]) for name, player in players.items()}
  assert entropies == pytest.approx({
    "new": drawn["entropy"] / 0.01, "restored": 2.0, "alone": 1.0}, rel=1e-6)
  recorded = results.read(tmp_path / run_files.LEARNERS / "new" / results.FILE_NAME)
  assert [row.tag for row in recorded] == ["population/entropy", "population/learning_rate"]
  assert not (tmp_path / run_files.LEARNERS / "restored").exists()
