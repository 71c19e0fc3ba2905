"""Actions against the official converter's encodings, pysc2's, and their own inverse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pysc2")

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.environments.sc2.converter import actions
from starleague.environments.sc2.protocol import sc_pb
from tests.environments.sc2 import recorded

FULL = recorded.make_setting(
  recorded.agent_config.full(), recorded.make_game_info(184, 184), 1)
TAGS = np.arange(100, 266, dtype=np.uint64) << np.uint64(32)


def make_action(function=0, delay=1, queued=0, repeat=0, units=(), target=0, location=0):
  picked = np.full(64, 512, np.int16)
  picked[:len(units)] = units
  return types.Action(function, delay, queued, repeat, picked, target, location)


def _golden():
  """(call, inverse, request) of the official converter, 1,112 of each."""
  golden, end = recorded.golden(), 0
  for call, inverse, length in zip(golden["actions"], golden["actions_supervised"],
                                   golden["action_proto_len"], strict=True):
    data, end = bytes(golden["action_proto"][end:end + length]), end + length
    size, start = data[1], 2  # field 1 holds the request, field 2 the delay
    if size > 127:
      size, start = size & 127 | data[2] << 7, 3
    yield call.tolist(), inverse.tolist(), data[start:start + size]


@recorded.needs_data
def test_encodings_are_the_official_converters_byte_for_byte():
  setting = recorded.setting()
  tags = recorded.convert(recorded.response(recorded.MIDGAME), setting).tags
  count = 0
  for (function, delay, queued, repeat, target, location, n, *units), _, expected in _golden():
    dense = int(v.FUNCTIONS.lookup[function])
    if v.FUNCTIONS.ids[dense] == function:  # specific functions are not the agent's
      action = make_action(dense, delay, queued, repeat, units[:n], target, location)
      assert actions.encode(action, tags, setting).SerializeToString() == expected
      count += 1
  assert count == 2 * 325


@recorded.needs_data
def test_decodings_are_the_official_converters():
  setting = recorded.setting()
  tags = recorded.convert(recorded.response(recorded.MIDGAME), setting).tags
  count = 0
  for _, inverse, request in _golden():
    function, delay, queued, repeat, target, location, *units = inverse
    found = actions.decode(sc_pb.RequestAction.FromString(request).actions, tags, setting, delay)
    assert [int(x) for x in (*found[:4], found.target_unit, found.location)] == [
      v.FUNCTIONS.lookup[function], delay, queued, repeat, target, location]
    if function:  # its no_op selects row 0 for ever, ours nothing
      assert found.units[:len(units)].tolist() == units
    count += 1
  assert count == 1112


def test_actions_are_pysc2s():
  """One function of each type, through `transform_action` of pysc2."""
  from pysc2.lib import actions as pysc2_actions
  from pysc2.lib import features, point
  interface = features.AgentInterfaceFormat(
    use_raw_units=True, use_raw_actions=True, raw_resolution=256)
  theirs = features.Features(interface, map_size=point.Point(184, 184))
  theirs._raw_tags = TAGS
  raw = pysc2_actions.RAW_FUNCTIONS
  for call, name, more in [
      (raw.Train_Marine_quick("now", [3, 5]), "Train_Marine_quick", {}),
      (raw.Attack_pt("queued", [3, 5], [128, 40]), "Attack_pt",
       {"queued": 1, "location": 40 * 256 + 128}),
      (raw.Attack_unit("now", [3, 5], [9]), "Attack_unit", {"target": 9}),
      (raw.raw_move_camera([128, 40]), "raw_move_camera", {"location": 40 * 256 + 128}),
      (raw.Effect_Heal_autocast([3, 5]), "Effect_Heal_autocast", {})]:
    action = make_action(v.FUNCTIONS.index(name), units=[3, 5], **more)
    found, = actions.encode(action, TAGS, FULL).actions
    assert found == theirs.transform_action(None, call), name


@pytest.mark.parametrize("action, count", [
  (make_action(0, repeat=2), 0),
  (make_action(v.FUNCTIONS.index("Train_Marine_quick"), units=[1], repeat=2), 3),
  (make_action(v.FUNCTIONS.index("Train_Marine_quick"), units=[1], repeat=9), 3),
  (make_action(v.FUNCTIONS.index("Attack_pt"), units=[1], repeat=2), 1),
  (make_action(v.FUNCTIONS.index("Attack_pt")), 0),
  (make_action(v.FUNCTIONS.index("Attack_unit"), units=[1], target=400), 0),
  (make_action(v.FUNCTIONS.index("Attack_unit"), units=[400], target=2), 0)])
def test_requests_have_an_action_for_each_repeat(action, count):
  assert len(actions.encode(action, TAGS, FULL).actions) == count


def test_what_the_agent_cannot_do_is_skipped():
  found = [sc_pb.Action() for _ in range(5)]
  found[0].action_chat.message = "hello"
  found[1].action_raw.unit_command.ability_id = 3674  # without units
  found[2].action_raw.unit_command.ability_id = 1_000_000
  found[3].action_raw.unit_command.ability_id = 3674
  found[3].action_raw.unit_command.target_unit_tag = 5  # not among the entities
  for action in found[2:4]:
    action.action_raw.unit_command.unit_tags.append(int(TAGS[0]))
  assert actions.decode(found, TAGS, FULL).function == 0
  found[4].action_raw.unit_command.CopyFrom(found[3].action_raw.unit_command)
  found[4].action_raw.unit_command.target_unit_tag = int(TAGS[7])
  decoded = actions.decode(found, TAGS, FULL, 300)
  assert decoded.function == v.FUNCTIONS.index("Attack_unit") and decoded.target_unit == 7
  assert decoded.delay == 127 and decoded.repeat == 0


def test_equal_abilities_of_a_loop_are_repeats():
  action = make_action(v.FUNCTIONS.index("Train_Marine_quick"), units=[1], repeat=1)
  request = actions.encode(action, TAGS, FULL)
  assert actions.decode(request.actions, TAGS, FULL).repeat == 1
  assert actions.decode([request.actions[0]] * 9, TAGS, FULL).repeat == 2


@st.composite
def _settings(draw):
  config = draw(st.sampled_from(
    [recorded.agent_config.mini(), recorded.MIDDLE, recorded.agent_config.full()]))
  size = draw(st.tuples(*[st.integers(32, 256)] * 2))
  return recorded.make_setting(config, recorded.make_game_info(*size), 1)


@given(_settings(), st.data())
def test_decoding_inverts_encoding(setting, data):
  config = setting.config
  count = data.draw(st.integers(1, config.max_entities))
  tags = np.arange(1, count + 1, dtype=np.uint64) << np.uint64(18)
  function = data.draw(st.integers(0, v.NUM_FUNCTIONS - 1))
  uses = v.Arguments(*v.ARGUMENT_TABLE[function])
  rows = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=config.max_selected))
  units = np.full(config.max_selected, config.max_entities, np.int16)
  if uses.units:
    units[:len(rows)] = sorted(rows)
  size, longest = config.location_size, max(setting.map_width, setting.map_height)
  column = data.draw(st.integers(0, max(int(size * setting.map_width / longest) - 1, 0)))
  row = data.draw(st.integers(0, max(int(size * setting.map_height / longest) - 1, 0)))
  # The converter raises places to y = 0.5: on maps whose cells are finer, the last ones move up.
  row = min(row, int(size * (setting.map_height - 0.5) / longest))
  action = types.Action(
    function, data.draw(st.integers(1, 127)), int(uses.queued and data.draw(st.booleans())),
    int(uses.repeat and data.draw(st.integers(0, 2))), units,
    int(uses.target_unit and data.draw(st.integers(0, count - 1))),
    int(uses.location and row * size + column))
  found = actions.decode(
    actions.encode(action, tags, setting).actions, tags, setting, action.delay)
  for name, a, b in zip(types.Action._fields, action, found, strict=True):
    np.testing.assert_array_equal(a, b, err_msg=name)
