"""Phases, learning rate and positions of imitation."""

import dataclasses
import itertools
import shutil
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types, vocabulary
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints, games, wire
from starleague.data.games import files, ordering
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options
from starleague.learner.loops import imitation_setup
from starleague.learner.loops.imitation_setup import Phase, Position, Recorded
from tests.data.games import recorded_games

MINI = agent_config.mini()
LENGTHS = [7, 12, 3, 9, 5, 8]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  return recorded_games.write(tmp_path_factory.mktemp("data") / "games", MINI, LENGTHS)


def imitation_options(**values):
  return learner_options.imitation_options(settings.complete({"imitation": {
    "batch_size": 3, "unroll_length": 4, "fine_tune_seconds": 0.0} | values}))


def default_agent():
  config = settings.complete({})
  return learner_options.imitating_agent(registry.make_parts(config), config)


def rates(warm_up, final):
  phase = Phase("imitation", np.arange(1), np.arange(1), 2e-3, 60.0, 0)
  return [imitation_setup.learning_rate(phase, done, warm_up, final)
          for done in (0.0, 0.1, 0.2, 0.6, 1.0)]


def test_the_learning_rate_rises_and_falls_along_half_a_cosine():
  np.testing.assert_allclose(rates(0.2, 0.1), [0.0, 1e-3, 2e-3, 1.1e-3, 2e-4])
  np.testing.assert_allclose(rates(0.0, 1.0), [2e-3] * 5)
  np.testing.assert_allclose(rates(1.0, 1.0), [0.0, 2e-4, 4e-4, 1.2e-3, 2e-3])


def test_phases_learn_other_games_than_they_measure(folder):
  data = games.read(folder)
  main, = imitation_setup.make_phases(
    imitation_options(held_out=0.3, seconds=9.0, epochs=2), data)
  assert (main.name, main.learning_rate, main.seconds, main.epochs) == ("imitation", 2e-3, 9.0, 2)
  assert sorted([*main.rows, *main.held_out]) == list(range(12)) and len(main.held_out) == 4
  main, fine = imitation_setup.make_phases(
    imitation_options(held_out=0.3, fine_tune_mmr=2000, fine_tune_epochs=3), data)
  assert (fine.learning_rate, fine.seconds, fine.epochs) == (3e-4, 0.0, 3)
  won = data.episodes.result > 0
  assert list(fine.rows) == [row for row in main.rows if won[row]] and len(fine.rows) == 4
  assert list(fine.held_out) == [row for row in main.held_out if won[row]]


def test_chosen_players_alone_are_learnt_and_measured(folder):
  data = games.read(folder)
  data = data._replace(episodes=data.episodes._replace(name=["student", "rush"] * 6))
  phases = imitation_setup.make_phases(
    imitation_options(held_out=0.3, names="student", fine_tune_mmr=2000, fine_tune_epochs=1), data)
  assert sorted([*phases[0].rows, *phases[0].held_out]) == list(range(0, 12, 2))
  assert all(row % 2 == 0 for phase in phases for row in [*phase.rows, *phase.held_out])
  both, = imitation_setup.make_phases(imitation_options(held_out=0.3, names="rush,student"), data)
  assert sorted([*both.rows, *both.held_out]) == list(range(12))
  with pytest.raises(UserError, match="'imitation.names': expected some of rush, student, the "
                                      "players of .*games; found 'siege'"):
    imitation_setup.make_phases(imitation_options(names="student,siege"), data)


def test_labels_are_learnt_with_all_games_after_the_first_phase(folder, tmp_path):
  path = tmp_path / "labels"
  with files.GamesWriter(path, MINI, "mini", ("open",), "labels") as writer:
    for game in range(4):
      writer.add([recorded_games.episode(MINI, 5, 2 * game + player, game=game, player=player,
                                         name=("student", "rusher")[player]) for player in (0, 1)])
  options = imitation_options(
    held_out=0.25, names="demo_2000", fine_tune_mmr=2000, fine_tune_epochs=1, labels_epochs=7,
    labels_seconds=0.0)
  recorded = Recorded(folder, path)
  data, labelled = imitation_setup.read_recorded(recorded, options, tmp_path / "run")
  assert labelled == len(LENGTHS) and len(data.episodes.game) == 20
  first, second, fine = imitation_setup.make_phases(options, data, labelled)
  alone, _ = imitation_setup.make_phases(options, games.read(folder))
  np.testing.assert_array_equal(first.rows, alone.rows)
  np.testing.assert_array_equal(first.held_out, alone.held_out)
  assert (second.name, second.learning_rate, second.seconds, second.epochs) == (
    "labels", 1e-3, 0.0, 7)
  assert fine.name == "fine-tuning" and set(fine.rows) < set(second.rows)
  for found, before in ((second.rows, first.rows), (second.held_out, first.held_out)):
    assert set(found[found < 12]) == set(before)
    new = found[found >= 12]
    assert set(data.episodes.name[new]) == {"student"}  # its opponents are not imitated
  assert len(second.rows) == len(first.rows) + 3 and len(second.held_out) == len(first.held_out) + 1
  assert len(imitation_setup.make_library(options, data, labelled)) == np.sum(
    data.episodes.result[np.flatnonzero(
      ~np.isin(data.episodes.game, data.episodes.game[second.held_out]))] > 0)


def test_a_run_goes_on_with_its_labels(folder, tmp_path):
  """Before the phase of labels its checkpoint has the digest of the first games, then of all."""
  labels = recorded_games.write(tmp_path / "labels", MINI, [3, 4], origin="labels")
  first, both = games.read(folder).digest, games.read(f"{folder},{labels}").digest
  saved = checkpoints.Checkpoints(tmp_path / run_files.IMITATION, MINI)
  params = imitation_setup.Best({"m": {"w": np.zeros(2, np.float32)}})
  options = imitation_options()

  def read(recorded):
    return imitation_setup.read_recorded(recorded, options, tmp_path)

  for step, position, fits in (
      (1, Position(complete=True, dataset=first), True), (2, Position(dataset=both), False),
      (3, Position(phase=1, dataset=both), True), (4, Position(phase=1, dataset=first), False)):
    saved.save(step, params, position._asdict())
    if fits:
      assert read(Recorded(folder, labels))[1] == len(LENGTHS)
    else:
      with pytest.raises(UserError, match="has learnt from another dataset"):
        read(Recorded(folder, labels))
  saved.save(5, params, Position(dataset=first)._asdict())
  assert read(Recorded(folder, first_alone=True))[1] is None


def test_games_without_z_give_none_to_the_library(tmp_path):
  empty = types.zeros(types.statistics_spec())
  with files.GamesWriter(tmp_path / "games", MINI, "mini", ("open",), "a test") as writer:
    for game in range(10):
      won = recorded_games.episode(MINI, 5, 2 * game, game=game, player=0, result=1, mmr=7000)
      lost = recorded_games.episode(MINI, 5, 2 * game + 1, game=game, player=1, result=-1)
      writer.add([won._replace(z=empty) if game % 2 else won, lost])
  data = games.read(tmp_path / "games")
  options = imitation_options(held_out=0.1)
  found = imitation_setup.make_library(options, data)
  learnt, _ = games.split(data, 0.1)
  assert len(found) == sum(row % 4 == 0 for row in learnt) > 0 and found.z.units.any(axis=1).all()


@pytest.mark.parametrize("names, labelled, expected, count", [
  ("", None, {"rush", "siege"}, 9), ("rush", None, {"rush"}, 3), ("siege", None, {"siege"}, 6),
  ("rush", 12, {"rush", games.STUDENT}, 6), ("siege", 12, {"siege", games.STUDENT}, 15)])
def test_the_library_has_the_z_of_imitated_winners_alone(
    tmp_path, names, labelled, expected, count):
  """Player 0 wins a third of the games, player 1 the others; of labels, player 0 is the student."""
  folders = ["games"] if labelled is None else ["games", "labels"]
  for first, name, player in ((0, "games", "rush"), (12, "labels", games.STUDENT)):
    with files.GamesWriter(tmp_path / name, MINI, "mini", ("open",), name) as writer:
      for game in range(12):
        winner = int(game % 3 > 0)
        writer.add([recorded_games.episode(
          MINI, 5, 2 * (first + game) + side, game=game, player=side, mmr=7000,
          name=(player, "siege")[side], result=1 if side == winner else -1) for side in (0, 1)])
  data = games.read(",".join(str(tmp_path / name) for name in folders))
  options = imitation_options(held_out=0.25, names=names)
  found = imitation_setup.make_library(options, data, labelled)
  learnt, _ = games.split(data, 0.25)
  won = [row for row in learnt
         if data.episodes.result[row] > 0 and data.episodes.name[row] in expected]
  assert len(found) == count
  np.testing.assert_array_equal(
    found.z.build_order_xy, games.library(data, np.array(won)).z.build_order_xy)


def test_a_library_of_a_player_that_does_not_play_is_refused(folder):
  with pytest.raises(UserError, match="'imitation.names': expected some of demo_2000, the players"):
    imitation_setup.make_library(imitation_options(names="macro"), games.read(folder))


def test_a_phase_without_games_is_refused(folder):
  data = games.read(folder)
  with pytest.raises(UserError, match=r"fine-tuning found 0 episodes to learn and 0"):
    imitation_setup.make_phases(imitation_options(fine_tune_mmr=2001, fine_tune_epochs=1), data)


def test_a_dataset_of_another_preset_or_tier_is_refused(folder, tmp_path):
  small = {"preset": "small", "environment": {"tier": "default", "opponents": "L0"},
           "actor": {"demonstrators": "L0"}}
  with pytest.raises(files.GamesError, match="another preset: expected 'small', found"):
    imitation_setup.read_games(
      folder, learner_options.imitation_options(settings.complete(small)))
  with files.GamesWriter(tmp_path / "other", MINI, "default", ["open"], "a test"):
    pass
  with pytest.raises(UserError, match="tier 'default', expected 'mini'"):
    imitation_setup.read_games(tmp_path / "other", imitation_options())


def test_games_of_a_preset_with_other_sizes_are_refused_at_once(folder, tmp_path):
  before = dataclasses.replace(MINI, max_entities=65)
  other = recorded_games.write(tmp_path / "before", before, [5, 7])
  for path in (other, f"{folder},{other}"):
    with pytest.raises(files.GamesError, match="column 'int16', row .*: expected 6 steps of .* "
                       "record again"):
      imitation_setup.read_games(path, imitation_options())


def test_runs_in_starcraft_ii_imitate_replays_and_games_of_skirmish(folder, tmp_path):
  with files.GamesWriter(tmp_path / "replays", MINI, "sc2", ["Home"], "a test"):
    pass
  options = learner_options.imitation_options(
    settings.complete({"environment": {"name": "sc2"}}))
  for path in (tmp_path / "replays", folder):
    assert imitation_setup.read_games(path, options).config == MINI
  with pytest.raises(UserError, match="tier 'sc2', expected 'mini'"):
    imitation_setup.read_games(tmp_path / "replays", imitation_options())


def test_batches_continue_from_any_position(folder):
  data = games.read(folder)
  options = imitation_options(held_out=0.2, epochs=2)
  phase, = imitation_setup.make_phases(options, data)
  every = list(imitation_setup.batches(data, phase, options, Position()))
  count = games.num_batches(data, phase.rows, 3, 4, options.seed)
  assert [(position.epoch, position.batch) for position, _ in every[:count]] == [
    (0, i + 1) for i in range(count)]
  assert every[-1][0].epoch == 1 and len(every) >= 2 * count - 2
  learnt = sum(batch.float32[:-1].shape[1] for _, batch in every)
  assert learnt == 3 * len(every)
  for at in (0, 3, count - 1, count, len(every) - 1):
    rest = list(imitation_setup.batches(data, phase, options, every[at][0]))
    assert [x.int32.tobytes() for _, x in rest] == [x.int32.tobytes() for _, x in every[at + 1:]]
  endless = imitation_setup.batches(data, phase._replace(epochs=0), options, Position())
  assert len(list(itertools.islice(endless, 5 * count))) == 5 * count


def test_the_best_snapshot_follows_a_run_that_lost_its_newest_checkpoint(tmp_path):
  """The run continues from update 60, behind its best snapshot of update 100."""
  best = imitation_setup.BestSnapshot(default_agent(), tmp_path)
  phase = Phase("imitation", np.arange(1), np.arange(1), 2e-3, 60.0, 0)
  for step, loss in ((100, 2.0), (60, 1.5)):
    best.save(step, {"m": {"w": np.full(2, loss, np.float32)}}, phase, loss)
    assert best.loss(phase) == loss
  params = checkpoints.load_params(tmp_path / run_files.IMITATED, MINI)
  np.testing.assert_array_equal(params["m"]["w"], [1.5, 1.5])


def test_an_imitation_killed_while_it_replaces_a_checkpoint_is_resumed(tmp_path):
  """The earlier checkpoint of the step has the name `.replaced-STEP` then."""
  best = imitation_setup.BestSnapshot(default_agent(), tmp_path)
  phase = Phase("imitation", np.arange(1), np.arange(1), 2e-3, 60.0, 0)
  params = {"m": {"w": np.full(2, 2.0, np.float32)}}
  best.save(5, params, phase, 2.0)
  position = Position(phase=1, batch=2, complete=True)
  saved = checkpoints.Checkpoints(tmp_path / run_files.IMITATION, MINI)
  saved.save(5, imitation_setup.Best(params), position._asdict())
  for name in (run_files.IMITATED, run_files.IMITATION):
    (tmp_path / name / "000000000005").rename(tmp_path / name / ".replaced-000000000005")
  assert imitation_setup.saved_position(tmp_path) == position
  resumed = imitation_setup.BestSnapshot(default_agent(), tmp_path)
  assert resumed.loss(phase) == 2.0 and resumed.loss(phase._replace(name="labels")) == np.inf
  resumed.save(4, params, phase, 1.5)  # behind the replaced one
  assert resumed.loss(phase) == 1.5
  assert list(checkpoints.find(tmp_path / run_files.IMITATED)) == [4]


def test_the_saved_position_is_that_of_the_newest_checkpoint_that_can_be_read(tmp_path):
  assert imitation_setup.saved_position(tmp_path) is None
  saved = checkpoints.Checkpoints(tmp_path / run_files.IMITATION, MINI)
  params = imitation_setup.Best({"m": {"w": np.zeros(2, np.float32)}})
  # Earlier versions stored no marker of completion.
  saved.save(3, params, {"phase": 1, "epoch": 0, "batch": 0, "seconds": 0.0})
  assert imitation_setup.saved_position(tmp_path) == Position(phase=1)
  newest = Position(phase=1, batch=2, seconds=5.0, complete=True)
  path = saved.save(4, params, newest._asdict())
  assert imitation_setup.saved_position(tmp_path) == newest
  (path / "manifest.json").write_text("{")
  assert imitation_setup.saved_position(tmp_path) == Position(phase=1)


def test_a_run_goes_on_with_its_dataset_alone(tmp_path):
  run_dir, path = tmp_path / "run", tmp_path / "games"
  recorded_games.write(path, MINI, LENGTHS)
  data = games.read(path)
  folder = run_dir / run_files.IMITATION
  imitation_setup.check_dataset(folder, data)  # nothing is learnt yet
  saved = checkpoints.Checkpoints(folder, MINI)
  params = imitation_setup.Best({"m": {"w": np.zeros(2, np.float32)}})
  saved.save(1, params, {"phase": 0, "epoch": 0, "batch": 1, "seconds": 0.0})
  imitation_setup.check_dataset(folder, data)  # earlier versions stored no digest
  saved.save(2, params, Position(batch=2, dataset=data.digest)._asdict())
  imitation_setup.check_dataset(folder, data)
  shutil.move(path, tmp_path / "moved")
  imitation_setup.check_dataset(folder, games.read(tmp_path / "moved"))
  with files.GamesWriter(tmp_path / "moved", MINI, "mini", ("open",), "a test") as writer:
    writer.add([recorded_games.episode(MINI, 4, 0, game=99, player=player) for player in (0, 1)])
  extended = games.read(tmp_path / "moved")
  with pytest.raises(UserError, match=(
      f"run '{run_dir}' has learnt from another dataset than {tmp_path / 'moved'} is now: expected "
      f"SHA-256 {data.digest[:12]}, found {extended.digest[:12]} .*; resume it with the earlier")):
    imitation_setup.check_dataset(folder, extended)


def test_devices_must_divide_a_batch():
  options = imitation_options()
  with pytest.raises(UserError, match="multiple of 8 devices times .* = 1, found 3"):
    imitation_setup.make_update(
      default_agent(), options, imitation_setup.make_optimizer(options))


def test_options_are_those_of_the_config():
  options = imitation_options(
    costs={"delay": 0.5}, l2=0.0, carry_state=False, keep_cumulative=0.25).objective
  assert options.weights.arguments == (1.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0)
  assert dataclasses.asdict(options) | {"weights": None} == {
    "weights": None, "keep_build_order": 0.8, "keep_cumulative": 0.25, "carry_state": False}


class TwoFunctions:
  """Chooses between functions 0 and 1: with 1/4 and 3/4 at first, with 1/5 and 4/5 later."""

  def unroll_batch(self, params, batch):
    length, size = batch.steps.weight.shape
    hidden = batch.initial_state.hidden
    odds = jnp.where(hidden[:, 0, 0] == 0, 3.0, 4.0)  # of function 1
    sizes = vocabulary.NUM_FUNCTIONS, 128, 2, 3, MINI.max_entities, 32 * 32
    function, delay, queued, repeat, target, location = (
      jnp.zeros((length, size, each)) for each in sizes)
    units = jnp.zeros((length, size, MINI.max_selected, MINI.max_entities + 1))
    function = (function - 100.0).at[..., 0].set(0.0).at[..., 1].set(jnp.log(odds))
    logits = vocabulary.Arguments(function, delay, queued, repeat, units, target, location)
    return Unrolled(logits, batch.initial_state._replace(hidden=hidden + 1.0))


class Unrolled(NamedTuple):
  logits: vocabulary.Arguments
  state: types.CoreState


def test_the_held_out_loss_is_the_mean_over_all_steps_of_all_batches(monkeypatch):
  """The state goes on from batch to batch; steps without weight do not count."""
  def batch(function, weighted, first):
    zeros = types.zeros(types.trajectory_spec(MINI, 3)).steps
    steps = jax.tree.map(lambda x: np.repeat(x[:, None], 4, 1), zeros)
    steps.action.function[...] = function
    steps.weight[:weighted] = 1
    packed = wire.seal(wire.pack_steps(steps), None)
    return ordering.OrderedBatch(*packed[:-1], state=None, first=np.full(4, first))

  monkeypatch.setattr(imitation_setup, "make_policy", lambda agent: TwoFunctions())
  monkeypatch.setattr(imitation_setup.games, "in_order", lambda *arguments, seed: iter(
    [batch(0, 1, True), batch(1, 4, False)]))
  options = imitation_options(batch_size=4, unroll_length=3)
  costs = vocabulary.Arguments(1.0, *[0.0] * 6)
  options = dataclasses.replace(options, objective=dataclasses.replace(
    options.objective, weights=dataclasses.replace(options.objective.weights, arguments=costs)))
  agent = default_agent()._replace(config=MINI)
  found = imitation_setup.Evaluator(agent, options, None)({}, np.arange(2))
  assert found["loss"] == pytest.approx((4 * np.log(4) + 12 * np.log(5 / 4)) / 16)
  assert found["cross_entropy/function"] == pytest.approx(found["loss"])
  assert found["accuracy/function"] == 0.75 and found["illegal/function"] == 0
