"""Flags that several launch files share, defined once: launch files may import one another."""

import math
import os
import pathlib
import re
import socket
import time
from collections.abc import Sequence
from typing import TypeVar

from absl import flags

from starleague.common import run_files
from starleague.common.errors import UserError

MAX_SEED = 2**31 - 1
IMITATOR, INITIAL, TRAINED = AGENTS = run_files.AGENTS
T = TypeVar("T")


def given(flag: "flags.FlagHolder[T | None]") -> T:
  """Returns the value of a flag that the launch file requires."""
  value = flag.value
  assert value is not None, f"--{flag.name} is not among the required flags"
  return value


def existing_run_dir() -> pathlib.Path | None:
  """Returns --run_dir; None if it is not given.

  Raises:
    UserError: there is no such directory.
  """
  if RUN_DIR.value is None:
    return None
  path = pathlib.Path(RUN_DIR.value)
  if not RUN_DIR.value or not path.is_dir():
    raise UserError(f"--run_dir: expected the directory of a run, found none at {RUN_DIR.value!r}")
  return path


def only_with(needed: flags.FlagHolder, *others: flags.FlagHolder, because: str = "") -> None:
  """Refuses flags that have no effect without another one.

  Args:
    needed: the other one; it is missing if its value is None or False.
    others: flags that need it.
    because: end of the message, such as ": game.npz is a recorded game".

  Raises:
    UserError: one of them is given, and the other one is missing.
  """
  if needed.value is not None and needed.value is not False:
    return
  for flag in others:
    if flag.present:
      raise UserError(f"--{flag.name} needs --{needed.name}{because}")


def make_folder(flag: flags.FlagHolder[str]) -> pathlib.Path:
  """Makes the folder that a flag names, before work whose result it holds.

  Raises:
    UserError: it cannot be made or written.
  """
  if not flag.value:
    raise UserError(f"--{flag.name}: expected a folder, found ''")
  path = pathlib.Path(flag.value)
  _make(flag.name, path)
  return path


def make_parent(flag: "flags.FlagHolder[str | None]") -> None:
  """Makes the folder of the file that a flag names, before work whose result the file holds.

  Raises:
    UserError: the flag names a folder, or the folder cannot be made or written.
  """
  if flag.value is not None:
    _make(flag.name, pathlib.Path(flag.value).parent)
    require_file(flag.name, flag.value)


def _make(flag: str, folder: pathlib.Path) -> None:
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise UserError(f"--{flag}: {folder} cannot be made: {error.strerror}") from error
  _require_writable(flag, folder)


def require_file(flag: str, path: str | None) -> None:
  """Refuses the path of an output file where none can be written, before the work.

  Raises:
    UserError: the path is a folder, or its folder does not exist or cannot be written; names the
      flag.
  """
  if path is None:
    return
  if pathlib.Path(path).is_dir():
    raise UserError(f"--{flag}: expected the path of a file, found the folder {path!r}; add a name")
  folder = pathlib.Path(path).parent
  if not folder.is_dir():
    raise UserError(f"--{flag}: folder {folder} does not exist")
  _require_writable(flag, folder)


def _require_writable(flag: str, folder: pathlib.Path) -> None:
  if not os.access(folder, os.W_OK | os.X_OK):
    raise UserError(f"--{flag}: {folder} cannot be written; choose another folder")


def match_games(default: int = 200, least: int = 2) -> int:
  """Returns --match_games.

  Args:
    default: where it is not given.
    least: the smallest valid number.

  Raises:
    UserError: it is odd or less than `least`.
  """
  games = default if MATCH_GAMES.value is None else MATCH_GAMES.value
  if games < least or games % 2:
    raise UserError(f"--match_games must be even (half from each side) and at least {least}, found "
                    f"{games}.")
  return games


def even_games() -> int | None:
  """Returns --games, half from each side; None if it is not given.

  Raises:
    UserError: it is odd.
  """
  games = GAMES.value
  if games is not None and games % 2:
    raise UserError(f"--games must be even (half from each side), found {games}.")
  return games


def preset(default: str) -> str:
  """Returns --preset, or `default` if it is not given.

  Raises:
    UserError: there is no preset of that name.
  """
  from starleague.agent import config as agent_config  # slow to import
  name = default if PRESET.value is None else PRESET.value
  try:
    agent_config.preset(name)
  except ValueError as error:
    raise UserError(f"--preset: {error}") from error
  return name


def origin() -> float:
  """Returns --origin, the start of the run in Unix seconds; now if it is not given."""
  return time.time() if ORIGIN.value is None else ORIGIN.value


def is_address(text: str | None) -> bool:
  """Returns whether a text is host:port, or None: the flag is not given."""
  if text is None:
    return True
  found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:\[\]/]+):([0-9]{1,5})", text)
  return found is not None and 1 <= int(found[2]) <= 65535


def seeds(default: Sequence[int]) -> tuple[int, ...]:
  """Returns the values of --seeds, each once; `default` if it is not given.

  Raises:
    UserError: a value is no seed, or there is none.
  """
  if SEEDS.value is None:
    return tuple(default)
  if not SEEDS.value or any(not seed.isdecimal() for seed in SEEDS.value):
    raise UserError(f"--seeds must be integers, as 0,1,2, found {','.join(SEEDS.value)!r}")
  return tuple(dict.fromkeys(map(int, SEEDS.value)))


def require_page_port() -> None:
  """Checks that the page can have its port, before anything is read or compiled.

  Raises:
    UserError: another program has it, or it needs other rights.
  """
  with socket.socket() as probe:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
      probe.bind(("127.0.0.1", PAGE_PORT.value))
    except OSError as error:
      raise UserError(f"--page_port={PAGE_PORT.value}: {error.strerror}; name another") from error


RUN = flags.DEFINE_string("run", "mini", "Name of the run: its directory in --runs_dir.")
RUNS_DIR = flags.DEFINE_string("runs_dir", "runs", "Directory of all runs.")
RUN_DIR = flags.DEFINE_string("run_dir", None, "Directory of the run.")
DATASET = flags.DEFINE_string(
  "dataset", None, "Folder of the dataset. record writes a new one; demonstrate and record_replays "
  "also continue one. Imitation reads several, separated by commas, as one.")
AGENT = flags.DEFINE_enum(
  "agent", IMITATOR, AGENTS, "The run's imitator, the weights that reinforcement learning started "
  "from, or its newest ones.")
OPPONENTS = flags.DEFINE_list(
  "opponents", None, "Scripted players to meet. Default: those of the run or of the ablation.")
GAMES = flags.DEFINE_integer(
  "games", None, "Number of games: of a dataset (default: 1000), or against each scripted player, "
  "half from each side (default: evaluation.games of the run).", lower_bound=1)
PRESET = flags.DEFINE_string("preset", None, "Preset of the agent: mini, small or full.")
OUT = flags.DEFINE_string("out", None, "File or folder to write.")
MATCH_GAMES = flags.DEFINE_integer(
  "match_games", None, "Games of each pair of agents, half from each side. Default: 200, or the "
  "ablation's.", lower_bound=0)
ARMS = flags.DEFINE_list(
  "arms", None, "Arms to train, as main,exploiters. Default: all of the experiment.")
EXPLOITER_UPDATES = flags.DEFINE_integer(
  "exploiter_updates", None, "Updates of all exploiters of an agent together. Default: 800, or the "
  "ablation's.", lower_bound=1)
ADDRESS = flags.DEFINE_string("address", None, "host:port of the data server.")
PAGE_PORT = flags.DEFINE_integer(
  "page_port", 0, "Port of the page on this machine; 0: any free one.", lower_bound=0,
  upper_bound=65535)
PARAMETERS = flags.DEFINE_string(
  "parameters", None, "host:port of the data server that holds the newest parameters, that of "
  "host 0 where the learner runs on several hosts. Default: --address.")
PORT = flags.DEFINE_integer("port", None, "Port to listen on.", lower_bound=1, upper_bound=65535)
LEAGUE = flags.DEFINE_string(
  "league", None, "host:port of the coordinator of the league that the run's players are in. "
  "Default: the run trains one agent against scripted players.")
ORIGIN = flags.DEFINE_float(
  "origin", None, "Start of the run in Unix seconds; times in results count from it. "
  "Default: now.")
SEED = flags.DEFINE_integer(
  "seed", 0, "Seed of the games.", lower_bound=0, upper_bound=MAX_SEED)
SEEDS = flags.DEFINE_list("seeds", None, "Seeds, as 0,1,2. Default: those of the experiment.")
TIER = flags.DEFINE_string(
  "tier", None, "Tier of the game: mini, default or large. Default: the run's tier where its agent "
  "plays, else the first tier that has the named players.")
RACES = flags.DEFINE_list(
  "races", ["random", "random"],
  "Races of the players, as protoss,zerg; random: drawn from --seed.")
MAP = flags.DEFINE_string("map", "random", "Map: open, ramps or river; random: drawn from --seed.")
PREDICTIONS = flags.DEFINE_bool(
  "predictions", True, "Whether the replay of a played game holds the predictions of agents, for "
  "its page.")
Z = flags.DEFINE_string(
  "z", None, "Library of z, such as RUN_DIR/z.npz: players get the z of a game of the same map, "
  "races and side, drawn from --seed. Default: agents play without z.")

for _flag in (ADDRESS, PARAMETERS, LEAGUE):
  flags.register_validator(_flag, is_address, message="expected host:port")
flags.register_validator(
  ORIGIN, lambda value: value is None or (math.isfinite(value) and value >= 0),
  message="expected Unix seconds")
