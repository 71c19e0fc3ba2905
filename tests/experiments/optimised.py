"""A launch file whose games are compiled with optimisations and whose learners are not.

  python -m tests.experiments.optimised launch --run small

Optimised games take a fifth of the time. A learner takes three times as long to compile with
optimisations, and makes few updates in a test.
"""

import runpy
import sys
from collections.abc import Mapping

from starleague.experiments.run.processes import graph
from tests import compiling

_data_parallel = graph.data_parallel


def data_parallel(variables: Mapping[str, str], *sizes: int) -> dict[str, str]:
  """Returns the environment variables of a learner without optimisations; see `graph`."""
  flags = variables["XLA_FLAGS"].replace(compiling.level(1), compiling.level(0))
  return _data_parallel({**variables, "XLA_FLAGS": flags}, *sizes)


if __name__ == "__main__":
  graph.data_parallel = data_parallel
  del sys.argv[0]
  runpy.run_module(f"starleague.experiments.{sys.argv[0]}", run_name="__main__", alter_sys=True)
