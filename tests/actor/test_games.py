"""A game through the inference service: who acts when, on whose noise, and what is recorded."""

import dataclasses

import jax
import numpy as np
import pytest

from starleague.actor import games
from starleague.actor.inference import Client
from starleague.agent import types
from starleague.data import wire
from starleague.data.assembler import Assembler
from starleague.environments import base
from starleague.league.ratings.archive import NEVER
from tests.actor.inference.serving import CONFIG, delay, make_model, serving

LENGTH = 60


@dataclasses.dataclass
class Clock:
  loop: int
  targets: list[int]
  acted: list[tuple[int, int, int]]  # player, loop, delay


def environment(log, players=2):
  """Player 0 loses after LENGTH loops; a player acts again after its delay."""
  def reset(key, match_up):
    log.append(Clock(0, [0] * players, []))
    return log[-1]

  def observe(state, player):
    observation = types.zeros(types.observation_spec(CONFIG.max_entities, CONFIG.map_size))
    return observation._replace(game_loop=np.int32(state.loop)), types.zeros(
      types.privileged_spec())

  def act(state, actions, acts):
    for player in np.flatnonzero(acts):
      state.acted.append((int(player), state.loop, int(actions.delay[player])))
      state.targets[player] = state.loop + int(actions.delay[player])
    return state

  def advance(state):
    state.loop = min(LENGTH, min(state.targets))
    return state

  def due(state):
    return np.array([state.loop < LENGTH and player < players
                     and state.targets[player] <= state.loop for player in range(2)])

  def outcome(state):
    over = state.loop >= LENGTH
    return base.Outcome(np.asarray(over), np.array([-1, 1], np.float32) * over)

  return base.Environment(reset, observe, act, advance, due, outcome)


class Host:
  """Plays games of an environment; a player starts on the given side of a map of 128 units."""

  final_errors = (ZeroDivisionError,)
  bot = ""

  def __init__(self, made, sides=(0, 1)):
    self.made, self._sides, self.shown = made, sides, None

  def environment(self):
    return self.made

  def sides(self):
    return self._sides

  def grid_per_unit(self):
    return 2.0

  def show(self, z):
    self.shown = z


def expected(seed, players):
  """The actions of a game by hand: (player, loop, delay) in order."""
  found = []
  for player in range(players):
    loop = number = 0
    while loop < LENGTH:
      found.append((player, loop, delay(2 * seed + player, number)))
      loop, number = loop + found[-1][2], number + 1
  return sorted(found, key=lambda item: item[1])


@pytest.mark.parametrize("opponent, players", [("", 2), ("zerg:easy", 1)])
def test_players_act_by_their_own_delays_and_noise(opponent, players):
  log, records = [], []
  with serving(make_model(2), 2, on_records=lambda found, _: records.append(found)) as listener:
    client = Client(listener.address, CONFIG, 2)
    report = games.play(Host(environment(log, players)), client,
                        games.GameRequest(opponent, seed=6), store(), CONFIG)
    client.close()
  actions = expected(6, players)
  assert sorted(log[0].acted) == sorted(actions)
  assert report == games.Report(-1, LENGTH, len(actions), ((0,) * 20,) * players,
                                behaviours=((0.0, 0.0, NEVER),) * players)
  steps = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *records)
  assert steps.row.size == len(actions) + players  # and the terminal observations
  assert steps.last.sum() == players and steps.first.sum() == players
  cuts = [cut for record in records for cut in ASSEMBLER.add(record)]
  rewards = {}
  for cut in cuts:
    trajectory = wire.unpack(cut.packed, CONFIG).steps
    rewards[cut.row] = rewards.get(cut.row, 0) + np.asarray(trajectory.reward)[-2, 0]
    assert set(np.asarray(trajectory.reward)[:-2, 0]) == {0}
  assert sorted(rewards.values()) == [-1, 1][:players]


ASSEMBLER = Assembler(CONFIG, 2, 2)


def test_a_draw_has_its_reward_and_is_reported_as_a_draw():
  log, records = [], []
  made = environment(log)
  drawn = made._replace(outcome=lambda s: made.outcome(s)._replace(reward=np.zeros(2, np.float32)))
  with serving(make_model(2), 2, on_records=lambda found, _: records.append(found)) as listener:
    client = Client(listener.address, CONFIG, 2)
    report = games.play(Host(drawn), client, games.GameRequest(seed=6),
                        store()._replace(draw=-0.25), CONFIG)
    client.close()
  assert report.result == 0
  assembler = Assembler(CONFIG, 2, 2)
  cuts = [cut for record in records for cut in assembler.add(record)]
  rewards = [np.asarray(wire.unpack(cut.packed, CONFIG).steps.reward)[:, 0] for cut in cuts]
  assert {float(value) for row in rewards for value in row} == {0.0, -0.25}
  assert sum(float(row[-2]) for row in rewards) <= -0.5  # both players' last steps


class Broken(Host):
  """A host whose first game fails."""

  def __init__(self):
    super().__init__(None)
    self.bot, self.closed, self.log, self.bots, self.saved = "", 0, [], [], []

  def environment(self):
    self.bots.append(self.bot)
    if len(self.bots) == 1:
      raise games.UserError("the game hangs")
    return environment(self.log, 1)

  def save_replay(self, path):
    self.saved.append(path.name)

  def close(self):
    self.closed += 1


class Unsaved(Host):
  """A host that cannot write replays: the game hangs, then the disk is full."""

  def __init__(self):
    super().__init__(environment([], 1))
    self.bot, self.closed = "", 0
    self.errors = [games.UserError("the game hangs"), OSError(28, "No space left on device")]

  def save_replay(self, path):
    raise self.errors.pop(0)

  def close(self):
    self.closed += 1


class Pipe:
  """Orders, then the end."""

  def __init__(self, *requests):
    self.requests, self.reports = list(requests), []

  def recv_bytes(self):
    if not self.requests:
      raise EOFError
    return games.encode(self.requests.pop(0))

  def send_bytes(self, message):
    self.reports.append(games.decode(games.Report, message))


def test_a_failed_game_is_void_and_the_next_one_is_played():
  host = Broken()
  pipe = Pipe(games.GameRequest("zerg:easy", 1, replay="one"), games.GameRequest("terran:hard", 2),
              games.GameRequest("terran:hard", 2, replay="three"))
  with serving(make_model(2), 2) as listener:
    games.serve(pipe, lambda: host, listener.address, store(), CONFIG)
  played = games.Report(-1, LENGTH, len(expected(2, 1)), ((0,) * 20,),
                        behaviours=((0.0, 0.0, NEVER),))
  assert pipe.reports == [games.Report(None, reason="the game hangs"), played, played]
  assert host.bots == ["zerg:easy", "terran:hard", "terran:hard"] and host.closed == 2
  assert host.saved == ["three"]


def test_a_game_whose_replay_cannot_be_written_has_its_result(caplog):
  host = Unsaved()
  pipe = Pipe(*[games.GameRequest("terran:hard", 2, replay=name) for name in ("one", "two")])
  with serving(make_model(2), 2) as listener:
    games.serve(pipe, lambda: host, listener.address, store(), CONFIG)
  assert [report.result for report in pipe.reports] == [-1, -1]
  assert host.errors == [] and host.closed == 2  # the hanging game's, and at the end
  assert [record.getMessage() for record in caplog.records if "replay" in record.msg] == [
    "replay_not_saved path=one reason='the game hangs'",
    "replay_not_saved path=two reason='[Errno 28] No space left on device'"]


def builds(log, orders):
  """Each player finishes a unit of its build order, 20 cells right of the last, at every action."""
  made = environment(log)

  def observe(state, player):
    observation, privileged = made.observe(state, player)
    count = sum(each == player for each, *_ in state.acted)
    executed = privileged.executed
    order, places = executed.build_order.copy(), executed.build_order_xy.copy()
    order[:count], places[:count, 0] = orders[int(player)][:count], 20 * np.arange(count)
    return observation, privileged._replace(
      executed=executed._replace(build_order=order, build_order_xy=places))

  return made._replace(observe=observe)


def store(*orders):
  """z of build orders with their units at the first place, after the unconditional one."""
  blank = types.zeros(types.statistics_spec())
  rows = [blank]
  for order in orders:
    wanted = blank.build_order.copy()
    wanted[:len(order)] = order
    rows.append(blank._replace(build_order=wanted))
  return games.GameConditioning(6200, jax.tree.map(lambda *x: np.stack(x), *rows), pseudo_scale=0.5)


def fights(log):
  """An army of a unit with supply 3 from loop 10; player 1 has killed a unit at loop 20."""
  made = environment(log)

  def observe(state, player):
    observation, privileged = made.observe(state, player)
    army = [types.PLAYER_COLUMNS.index(name) for name in ("food_army", "army_count")]
    observation.player[army] = (3, 1) if state.loop >= 10 else (0, 0)
    killed = types.SCORE_COLUMNS.index("killed_value_units")
    privileged.cumulative_score[killed] = 50 * (player == 1 and state.loop >= 20)
    return observation, privileged

  return made._replace(observe=observe)


def test_a_report_has_the_behaviours_of_its_agents():
  log = []
  with serving(make_model(2), 2) as listener:
    client = Client(listener.address, CONFIG, 2)
    report = games.play(Host(fights(log)), client, games.GameRequest(seed=6), store(), CONFIG)
    client.close()
  loops = [loop for player, loop, _ in expected(6, 2) if player == 1]
  first = min([loop for loop in loops if loop >= 20], default=LENGTH)
  assert report.behaviours == ((0.0, 3.0, NEVER), (0.0, 3.0, first))
  assert games.decode(games.Report, games.encode(report)) == report


def test_z_is_that_of_the_starting_side_and_its_distance_is_rewarded():
  conditioning, log, records = store([7, 8, 9, 10], [7, 8, 9]), [], []
  request = games.GameRequest(seed=6, z_rows=((1, 2), (1, 2)), active=(
    (False,) * 4, (True, False, False, True)))
  host = Host(builds(log, ([7] * 20, [7, 5, 9] + [0] * 17)), sides=(0, 1))
  with serving(make_model(2), 2, on_records=lambda found, _: records.append(found)) as listener:
    client = Client(listener.address, CONFIG, 2)
    games.play(host, client, request, conditioning, CONFIG)
    client.close()
  # Player 1 starts on side 1 and sees the second z; player 0's has no active part.
  assert host.shown.build_order[1, :4].tolist() == [7, 8, 9, 0]
  assert not host.shown.build_order[0].any()
  assembler = Assembler(CONFIG, 2, 2)
  rewards = {0: {}, 1: {}}  # by game loop: the last trajectory of a game overlaps
  for cut in (cut for record in records for cut in assembler.add(record)):
    steps = jax.tree.map(np.asarray, wire.unpack(cut.packed, CONFIG).steps)
    player = int(steps.pseudo_active.any())
    rewards[player].update(zip(steps.observation.game_loop[:-1].tolist(),
                               steps.reward[:-1, 1:], strict=True))
    assert steps.pseudo_active[0].tolist() == list(request.active[player])
  assert not np.any(list(rewards[0].values()))
  # Distances to 7 8 9: 3, then 2 with 7, 2 with 7 5, and 1.8 with 7 5 9, as the 9 is 20 game units
  # away. Half of each decrease.
  found = np.array([rewards[1][loop] for loop in sorted(rewards[1])])
  np.testing.assert_allclose(found[:, 0], [0.5, 0.0, 0.1], atol=1e-6)
  assert not found[:, 1:].any()
