"""pysc2 and its protocol on this Python: imports, and messages where they are broken."""

import subprocess
import sys

import pytest

pytest.importorskip("s2clientprotocol")
pytest.importorskip("pysc2")

from starleague.environments.sc2 import protocol

_IMPORTS = """
import random
import starleague.environments  # Haiku imports Flax where it is installed, which draws a number
state = random.getstate()
from starleague.environments.sc2 import protocol
assert random.getstate() == state
assert random.shuffle == random._inst.shuffle
from pysc2 import maps, run_configs
from pysc2.env import lan_sc2_env, mock_sc2_env, remote_sc2_env, sc2_env
from pysc2.lib import actions, colors, features, remote_controller, sc_process, units
from pysc2.agents import random_agent, scripted_agent
from pysc2.lib.replay import sc2_replay
print(len(actions.RAW_FUNCTIONS), len(colors.shuffled_hue(256)))
"""


def _run(code, **variables):
  return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                        env=variables or None)


@pytest.mark.slow
def test_every_part_of_pysc2_that_plays_can_be_imported():
  done = _run(_IMPORTS)
  assert done.returncode == 0, done.stderr
  assert done.stdout.splitlines()[-1] == "564 256"


def test_messages_survive_a_round_trip():
  request = protocol.sc_pb.Request(id=7, observation=protocol.sc_pb.RequestObservation(game_loop=3))
  parsed = protocol.sc_pb.Request.FromString(request.SerializeToString())
  assert parsed == request and parsed.WhichOneof("request") == "observation"
  modules = (protocol.common_pb.Point(x=1), protocol.raw_pb.Unit(tag=2), protocol.ui_pb.ActionUI(),
             protocol.data_pb.UnitTypeData(), protocol.debug_pb.DebugCommand(),
             protocol.query_pb.RequestQuery(), protocol.score_pb.Score(),
             protocol.spatial_pb.ActionSpatial())
  assert all(type(m).FromString(m.SerializeToString()) == m for m in modules)
  assert protocol.error_pb.ActionResult.Name(1) == "Success"


def test_shuffle_is_that_of_older_pythons():
  values = list(range(10))
  protocol._shuffle(values, lambda: 0.5)
  # By hand: 9 swaps with 5, 8 with 4, 7 with 4, 6 with 3, 5 with 3, 4 with 2, 3 with 2, 2 with 1,
  # 1 with 1.
  assert values == [0, 9, 1, 7, 2, 6, 3, 8, 4, 5]


@pytest.mark.parametrize("source, expected", [
  ("raise TypeError('Descriptors cannot be created directly.')",
   "found those of s2clientprotocol; pip install --force-reinstall"),
  ("raise ImportError('no module')", "expected the package pys2clientprotocol, found: no module"),
])
def test_a_broken_protocol_package_is_named_with_its_remedy(tmp_path, source, expected):
  (tmp_path / "s2clientprotocol").mkdir()
  (tmp_path / "s2clientprotocol" / "__init__.py").write_text(source)
  code = (f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
          "from starleague.common.errors import UserError\n"
          "try:\n  import starleague.environments.sc2.protocol\n"
          "except UserError as error:\n  print(isinstance(error, ImportError), error)")
  done = _run(code)
  assert done.stdout.startswith("True StarCraft II's protocol: "), done.stderr
  assert expected in done.stdout
