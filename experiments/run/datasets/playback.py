"""Records StarCraft II replays as a dataset of whole games: the game plays them back."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.common.errors import UserError
from starleague.common.text import printable
from starleague.data import wire
from starleague.data.games import episodes, files
from starleague.data.records import Records
from starleague.data.replays import library, reading, refusals, workers
from starleague.data.replays.records import Decoded
from starleague.environments.base import PlayerStep
from starleague.experiments.run.games import sc2

UNKNOWN_MMR = 3500  # of players whose replay has none, as in pysc2's converter
_MOST_MMR = int(np.iinfo(files.NUMBERS["mmr"]).max)  # that a dataset and an observation hold
_CHUNK = 64  # steps that are packed at once


class PlaybackError(UserError):
  """The game cannot play a replay back; says why."""


class GameLostError(UserError):
  """The game did not start, or its connection was lost: the same command may succeed."""


# (replay, decoded, config) -> the steps of both players in order of time
PlayBack = Callable[[bytes, Decoded, AgentConfig], Iterable[PlayerStep]]


class Job(NamedTuple):
  """A replay to play back."""

  path: Path
  decoded: Decoded  # its game and players


def jobs(folders: Sequence[str | os.PathLike]) -> tuple[list[Job], list[tuple[Path, str]]]:
  """Returns the replays of folders that have the actions of two human players or agents.

  Returns:
    The replays in order of their paths, one of each game, and the others with the reasons.

  Raises:
    UserError: a file cannot be read, or ran into a limit of its decoder.
  """
  found: list[Job] = []
  refused = []
  first: dict[str, Path] = {}  # file of each game, by key
  paths = [(str(path), reading.unreadable(path)) for path in reading.find(folders)]
  for name, refusal in paths:
    _require_final(name, refusal)  # before the first one is decoded
  # In a child process with limits: the files are untrusted.
  for name, decoded in workers.decode_all(paths, 1) if paths else ():
    path = Path(name)
    if isinstance(decoded, refusals.Refusal):
      _require_final(name, decoded)
      refused.append((path, str(decoded)))
    elif decoded.game.unread or any(player.computer for player in decoded.players):
      refused.append((path, decoded.game.unread or "a player is a computer, without inputs"))
    elif first.setdefault(decoded.game.key, path) != path:
      # Both players of a game save it: recorded twice, it could be learnt and held out.
      refused.append((path, f"{refusals.DUPLICATE}: another file of the game of "
                            f"{printable(str(first[decoded.game.key]))}"))
    else:
      # Of thousands of replays, the rows that playback does not use would fill the memory.
      found.append(Job(path, decoded._replace(builds=[], commands=[])))
  return found, refused


def _require_final(name: str, refusal: refusals.Refusal | None) -> None:
  """Raises UserError if a file may be read the next time: the dataset could not be continued."""
  if refusal is not None and refusal.reason in refusals.PASSING:
    raise UserError(printable(
      f"{name}: {refusal.reason}: {refusal.detail}; expected to read every replay, because a "
      "dataset continues with the same ones only: start the command again, or move this file to "
      "another folder."))


def play_back(replay: bytes, decoded: Decoded, config: AgentConfig) -> Iterator[PlayerStep]:
  """Plays a replay back with the game, through pysc2.

  Raises:
    InstallationError: the game is not installed.
    PlaybackError: its version or map is not installed, or the game refuses it.
    GameLostError: the game does not start, or its connection is lost.
  """
  from starleague.environments.sc2 import replays
  from starleague.environments.sc2.client import installation
  from starleague.environments.sc2.converter.setting import make_setting
  installation.find()
  schedule = replays.plan([player.action_loops for player in decoded.players], decoded.game.loops)
  failures: tuple[type[Exception], ...] = (OSError, ValueError, *replays.errors())
  try:
    with replays.open_stream(config) as stream:
      stream.start_replay_from_data(replay, player_id=1)
      info = stream.game_info()
      settings = [make_setting(config, info, player.player, mmr=mmr_of(player.mmr))
                  for player in decoded.players]
      decisions = replays.align(replays.play(stream, schedule), schedule)
      yield from replays.convert(decisions, settings)
  except failures as error:
    found = (f"{decoded.game.file} (version {decoded.game.version}, map {decoded.game.map}): "
             f"{type(error).__name__}: {error}")
    if replays.is_passing(error):
      raise GameLostError(printable(
        f"{found}; expected the game to start and to answer, because a dataset continues after "
        "its newest game: start the command again. If this file fails each time, record the others "
        "into another folder.")) from error
    raise PlaybackError(found) from error


def mmr_of(found: int | None) -> int:
  """Returns a rating as agents observe it; UNKNOWN_MMR for none and for impossible ones."""
  return found if found is not None and 0 < found <= _MOST_MMR else UNKNOWN_MMR


def assemble(steps: Iterable[PlayerStep], config: AgentConfig,
             ) -> tuple[tuple[wire.Columns, wire.Columns], tuple[types.Statistics, ...], list[int]]:
  """Packs the steps of a game.

  Returns:
    Columns, executed statistics and result of each player.

  Raises:
    PlaybackError: the game has no end.
  """
  # Each step has the delay of the decision before: nobody chose that of a game's last decision.
  assembler = episodes.EpisodeAssembler(config, 1, 1, labelled=(True, True))
  executed = [types.zeros(types.statistics_spec())] * 2
  results, ended, chunk = [0, 0], 0, list[PlayerStep]()

  def add() -> list[episodes.FinishedGame]:
    found = [x[None] for x in map(np.array, zip(*(
      (step.player, step.first, step.last) for step in chunk), strict=True))]
    row, first, last = (x.reshape(-1, 1) for x in found)
    packed = wire.pack_steps(jax.tree.map(
      lambda *x: np.stack(x)[:, None], *(step.step for step in chunk)))
    over = np.zeros((len(chunk), 1), bool)
    over[-1] = ended == 2
    chunk.clear()
    state = types.CoreState(*[np.zeros((len(over), 1, 1, 1), np.float32)] * 2)  # not used
    return assembler.add(Records(row, first, last, packed, state), over)

  for step in steps:
    chunk.append(step)
    executed[step.player] = step.executed
    if step.last:
      ended, results[step.player] = ended + 1, int(np.sign(step.step.reward[0]))
    if ended == 2:
      game, = add()
      return game.steps, tuple(executed), results
    if len(chunk) == _CHUNK:
      add()
  raise PlaybackError("the playback stopped before the game's end; is the replay damaged?")


def make_episodes(job: Job, number: int, map_index: int, config: AgentConfig,
                  play: PlayBack) -> list[files.Episode]:
  """Returns both sides of a replay's game.

  Args:
    job: the replay.
    number: of the game in the dataset.
    map_index: of its map in the dataset.
    config: of the steps.
    play: plays it back.
  """
  columns, executed, results = assemble(
    play(job.path.read_bytes(), job.decoded, config), config)
  one, other = (episodes.Side(
    name=row.name, race=types.RACES.index(row.race), side=row.side, mmr=mmr_of(row.mmr),
    result=results[player], z=executed[player], steps=columns[player])
    for player, row in enumerate(job.decoded.players))
  return episodes.make_episodes(number, map_index, (one, other), config)


def record(path: str | os.PathLike, replays: Sequence[Job], preset: str,
           report: Callable[[files.Description], None] = lambda written: None,
           refuse: Callable[[Path, str], None] = lambda path, reason: None,
           play: PlayBack = play_back) -> files.Description:
  """Plays replays back into a dataset; continues one of the same replays.

  A replay that cannot be played back is left out. A map has one title, as in a library of z.

  Args:
    path: the dataset's folder.
    replays: in the order of the dataset's games.
    preset: of the agent whose shapes the steps have.
    report: called after each game with what is written.
    refuse: called for a replay that is left out, with the reason.
    play: plays a replay back.

  Returns:
    The description of the dataset.

  Raises:
    GamesError: the folder holds something else, or a dataset of other replays.
    InstallationError: the game is not installed.
    GameLostError: the game did not start, or its connection was lost. The games so far are
      complete on disk.
  """
  config = agent_config.preset(preset)
  titles = library.map_titles([(job.decoded.game.map_digest, job.decoded.game.map)
                               for job in replays])
  maps = sorted(set(titles.values()))
  digest = hashlib.sha256(
    "".join(job.decoded.game.replay for job in replays).encode()).hexdigest()
  origin = f"{len(replays)} replays, SHA-256 {digest}"
  with files.GamesWriter(path, config, sc2.GAME.name, maps, origin) as writer:
    for number in range(writer.last_game + 1, len(replays)):
      job = replays[number]
      map_index = maps.index(titles[job.decoded.game.map_digest])
      try:
        sides = make_episodes(job, number, map_index, config, play)
      except GameLostError:
        writer.flush()  # else the games of the open part would be played back again
        raise
      except PlaybackError as error:
        refuse(job.path, str(error))
        continue
      writer.add(sides)
      report(writer.written)
  return writer.complete
