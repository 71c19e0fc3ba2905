"""Set-up of all tests: eight virtual CPU devices, a compilation cache, repeatable draws."""

import gc
import os
import signal
import tempfile
import time
from pathlib import Path

from tests import compiling

# A shell starts background jobs with SIGINT ignored, and their children would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
  signal.signal(signal.SIGINT, signal.default_int_handler)

# Read when the backend starts, so before any test module can import JAX.
_DEVICES = "--xla_force_host_platform_device_count"
if _DEVICES not in os.environ.get("XLA_FLAGS", ""):
  os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} {_DEVICES}=8 {compiling.FAST}").strip()
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hypothesis  # noqa: E402
import jax  # noqa: E402
import pytest  # noqa: E402
from xdist.scheduler import LoadFileScheduling  # noqa: E402

jax.config.update("jax_platforms", "cpu")  # in case a plugin imported JAX first

# Traced programs are many objects that stay alive, and JAX adds work to each collection.
gc.freeze()
gc.set_threshold(100_000, 20, 20)

_CACHED_S = 7 * 24 * 3600  # a cached program that no run has read for so long is deleted


def _use_compilation_cache() -> None:
  """Keeps compiled programs between test runs; most of the tests' time is compilation."""
  name = f"starleague-tests-{os.getuid()}-{jax.__version__}"
  directory = Path(tempfile.gettempdir()) / name
  try:
    directory.mkdir(mode=0o700, exist_ok=True)
  except OSError:
    return
  # The cached programs are executed: a directory of another user is not to be trusted.
  if directory.is_symlink() or directory.stat().st_uid != os.getuid():
    return
  compiling.remove_unread(directory, time.time() - _CACHED_S)
  jax.config.update("jax_compilation_cache_dir", str(directory))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
  jax.config.update("jax_raise_persistent_cache_errors", False)  # a spoilt entry is recompiled


_use_compilation_cache()
jax.devices()  # a program of a test that starts JAX itself would change their number

# The same examples on every run: a failure that CI finds is a failure here.
hypothesis.settings.register_profile("starleague", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("starleague")

# The files that take longest begin: otherwise one process would end long after the others, or run
# one of these when the programs of all tests before it fill the memory. Whole runs share programs,
# so two of them do not begin together.
LONGEST = ("experiments/test_train.py", "learner/test_supervised_overfit.py",
           "experiments/test_learner.py", "experiments/test_launch.py", "experiments/test_actor.py",
           "learner/test_update_policy.py", "experiments/test_supervise.py",
           "experiments/run/datasets/test_students.py",
           "experiments/run/datasets/test_demonstrations.py", "examples/test_ppo_skirmish.py",
           "experiments/test_third_game.py")


# The files of such a folder use the same programs and games, so one process runs them all.
SHARING = ("tests/environments/skirmish/rules",)
# Files that follow another one, to reuse the programs that it compiled.
FOLLOWING = {"tests/experiments/test_actor.py": "tests/experiments/test_launch.py"}


def pytest_collection_modifyitems(items: list) -> None:
  """Puts the tests of the longest files first."""
  folder = Path(__file__).parent
  place = {folder / name: number for number, name in enumerate(LONGEST)}
  items.sort(key=lambda item: place.get(item.path, len(place)))


class Scheduling(LoadFileScheduling):
  """Gives a process a file and those that follow it, or a whole folder of SHARING."""

  def _split_scope(self, nodeid: str) -> str:
    file = super()._split_scope(nodeid)
    return next((folder for folder in SHARING if file.startswith(f"{folder}/")),
                FOLLOWING.get(file, file))


@pytest.hookimpl(optionalhook=True)  # plain pytest has no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
  """Returns the schedule of the processes that share the suite."""
  return Scheduling(config, log)
