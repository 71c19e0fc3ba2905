"""Steps of interleaved games become whole episodes, with true delays, rewards and z."""

import dataclasses

import jax
import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import wire
from starleague.data.games import episodes
from starleague.data.records import Records
from tests.data.unpacking import unpack

TINY = dataclasses.replace(agent_config.mini(), max_entities=3, map_size=4, max_selected=2)
SPEC = types.step_spec(3, 4, 2)
GAMES = 2


def step(rng, loop, *, won=None):
  """A step with random leaves where packing is exact; `won`: the terminal step."""
  found = types.zeros(SPEC)
  found.observation.entities[:] = rng.integers(-300, 300, found.observation.entities.shape)
  found.observation.unit_counts[:] = rng.integers(0, 256, found.observation.unit_counts.shape)
  found.observation.available_actions[:] = rng.integers(0, 2, 327)
  action = found.action._replace(
    function=np.int16(5), delay=np.int16(3), units=np.array([1, 3], np.int16))
  return found._replace(
    observation=found.observation._replace(game_loop=np.int32(loop)), action=action,
    reward=np.array([won or 0, 0, 0, 0, 0], np.float32), discount=np.float32(won is None),
    weight=np.float32(1), log_prob=jax.tree.map(lambda x: np.float32(-1), found.log_prob))


class Play:
  """Random interleaved games, cut into calls as the rollout program does."""

  def __init__(self, seed, lengths):
    """Makes games with these numbers of decisions: per game of the batch, pairs per player."""
    rng = np.random.default_rng(seed)
    self.expected = {}  # (game of the batch, nth) -> steps of each player
    queues = []
    for game, games in enumerate(lengths):
      queue = []
      for nth, pair in enumerate(games):
        sides = []
        for player, decisions in enumerate(pair):
          loops = np.cumsum(rng.integers(1, 200, decisions + 1))
          sides.append([step(rng, loop, won=None if i < decisions else 1 - 2 * player)
                        for i, loop in enumerate(loops)])
        self.expected[game, nth] = sides
        rows = [(2 * game + player, i == 0, i == len(side) - 1, found)
                for player, side in enumerate(sides) for i, found in enumerate(side)]
        rng.shuffle(order := [0] * len(sides[0]) + [1] * len(sides[1]))
        by_player = [iter(rows[:len(sides[0])]), iter(rows[len(sides[0]):])]
        queue.append([next(by_player[player]) for player in order])
      queues.append(queue)
    self.calls = [self._call(call) for call in self._cut(rng, queues)]

  def _cut(self, rng, queues):
    """Yields calls of four iterations; a game's next one begins an iteration later."""
    call = []
    while any(queues):
      records, over = [], []
      for queue in queues:
        taken = set()
        while queue and queue[0] and queue[0][0][0] not in taken and rng.random() < 0.7:
          records.append(queue[0].pop(0))
          taken.add(records[-1][0])
        over.append(bool(queue) and not queue[0])
        if over[-1]:
          queue.pop(0)
      call.append((records, over))
      if len(call) == 4 or not any(queues):
        yield call
        call = []

  def _call(self, call):
    width = 2 * GAMES
    empty = (-1, False, False, types.zeros(SPEC))
    rows = [records + [empty] * (width - len(records)) for records, _ in call]
    row, first, last = (np.array([[record[i] for record in records] for records in rows])
                        for i in range(3))
    steps = jax.tree.map(lambda *x: np.stack(x).reshape(len(rows), width, *x[0].shape),
                         *[record[3] for records in rows for record in records])
    return (Records(row, first, last, wire.pack_steps(steps), None),
            np.array([over for _, over in call]))


@pytest.mark.parametrize("seed", range(3))
def test_episodes_hold_every_step_of_their_game(seed):
  lengths = [[(5, 3), (1, 1), (9, 12)], [(2, 7), (4, 4)]]
  play = Play(seed, lengths)
  assembler = episodes.EpisodeAssembler(TINY, GAMES, 99)
  found = [game for records, over in play.calls for game in assembler.add(records, over)]
  assert sorted(game.number for game in found) == list(range(5))
  nth = [0, 0]
  for game in found:
    expected = play.expected[game.game, nth[game.game]]
    nth[game.game] += 1
    for player, side in enumerate(expected):
      steps, decisions = unpack(game.steps[player], TINY, 13), len(side) - 1
      truth = jax.tree.map(lambda *x: np.stack(x), *side)
      for a, b in zip(jax.tree.leaves(steps.observation), jax.tree.leaves(truth.observation),
                      strict=True):
        np.testing.assert_array_equal(a, b)
      until = np.clip(np.diff(truth.observation.game_loop), 1, 127)
      np.testing.assert_array_equal(steps.action.delay[:decisions - 1], until[:-1])
      assert steps.action.delay[decisions - 1:].tolist() == [3, 0]  # as chosen; no action
      assert (steps.action.function[:-1] == 5).all() and steps.action.function[-1] == 0
      assert steps.action.units[-1].tolist() == [3, 3]
      assert steps.reward[:, 0].tolist() == [0] * (decisions - 1) + [1 - 2 * player, 0]
      assert steps.discount.tolist() == [1] * (decisions - 1) + [0, 0]
      assert steps.weight.tolist() == [1] * decisions + [0]
      assert steps.log_prob.delay.tolist() == [-1] * decisions + [0]


def test_games_that_begin_too_late_are_not_collected():
  play = Play(0, [[(5, 3), (1, 1), (9, 12)], [(2, 7), (4, 4)]])
  assembler = episodes.EpisodeAssembler(TINY, GAMES, 3)
  found = [game for records, over in play.calls for game in assembler.add(records, over)]
  assert sorted(game.number for game in found) == [0, 1, 2]


def test_z_reaches_every_step():
  play = Play(0, [[(5, 3)], []])
  assembler = episodes.EpisodeAssembler(TINY, GAMES, 1)
  game, = [game for records, over in play.calls for game in assembler.add(records, over)]
  rng = np.random.default_rng(0)
  own, other = (jax.tree.map(
    lambda x: rng.integers(0, 256, x.shape).astype(x.dtype) if x.dtype == np.uint8
    else rng.random(x.shape) < 0.5, types.zeros(types.statistics_spec())) for _ in range(2))
  before = unpack(game.steps[0], TINY, 13)
  episodes.add_z(game.steps[0], own, other, TINY)
  after = unpack(game.steps[0], TINY, 13)
  for name in types.Statistics._fields:
    for found, z in ((after.observation.statistics, own),
                     (after.privileged.opponent_statistics, other)):
      np.testing.assert_array_equal(getattr(found, name), [getattr(z, name)] * 6)
  without = [x._replace(
    observation=x.observation._replace(statistics=0),
    privileged=x.privileged._replace(opponent_statistics=0)) for x in (before, after)]
  for a, b in zip(*map(jax.tree.leaves, without), strict=True):
    np.testing.assert_array_equal(a, b)


def test_both_sides_of_a_game_have_the_z_of_both():
  play = Play(1, [[(5, 3)], []])
  assembler = episodes.EpisodeAssembler(TINY, GAMES, 1)
  game, = [game for records, over in play.calls for game in assembler.add(records, over)]
  z = [types.zeros(types.statistics_spec()) for _ in range(2)]
  for player, own in enumerate(z):
    own.build_order[:] = 1 + player
  one, other = (episodes.Side(
    name=f"player {player}", race=1 + 2 * player, side=1 - player, mmr=3000 + player,
    result=1 - 2 * player, z=z[player], steps=game.steps[player]) for player in (0, 1))
  found = episodes.make_episodes(17, 4, (one, other), TINY)
  assert [(x.game, x.map_index, x.player, x.name, x.race, x.away_race, x.side, x.mmr, x.result)
          for x in found] == [(17, 4, 0, "player 0", 1, 3, 1, 3000, 1),
                              (17, 4, 1, "player 1", 3, 1, 0, 3001, -1)]
  for player, x in enumerate(found):
    steps = unpack(x.steps, TINY, 13)
    assert (x.z.build_order == 1 + player).all()
    assert (steps.observation.statistics.build_order == 1 + player).all()
    assert (steps.privileged.opponent_statistics.build_order == 2 - player).all()


def test_the_record_after_a_label_holds_its_delay():
  """Of player 0 only; the terminal record's is that of the last decision."""
  play = Play(2, [[(9, 3)], [(1, 4)]])
  assembler = episodes.EpisodeAssembler(TINY, GAMES, 99, labelled=(True, False))
  delays, found = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19], []
  field, seen = wire.layout(TINY).fields["action.delay"], [0] * 2 * GAMES
  for records, over in play.calls:
    column = np.asarray(records.step.int16)
    for at in zip(*np.nonzero(records.row >= 0), strict=True):
      row = records.row[at]
      column[(*at, field.slice)] = delays[seen[row]]
      seen[row] += 1
    found += assembler.add(records, over)
  for game in found:
    decisions = [9, 1][game.game]
    steps = unpack(game.steps[0], TINY, 13)
    assert steps.action.delay.tolist() == [*delays[1:decisions + 1], 0]
    loops = play.expected[game.game, 0][1]
    until = [int(b.observation.game_loop - a.observation.game_loop)
             for a, b in zip(loops, loops[1:], strict=False)]
    assert unpack(game.steps[1], TINY, 13).action.delay[:-2].tolist() == np.clip(
      until[:-1], 1, 127).tolist()
