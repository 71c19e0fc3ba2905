"""Files of a run: their names, wherever they are written or read."""

import pathlib

PLAYER = "main"  # the player of a run that trains one agent
INITIAL = "initial"  # snapshot of the initial weights, the teacher of reinforcement learning
STAGES = "stages"  # snapshots of the weights that stages after the first began from
CHECKPOINTS = "checkpoints"  # of the run's agent, or of a league's player
LEARNERS = "learners"  # of a league: a directory for each learning player
PLAYERS = "players"  # of a league: a snapshot for each historical player
CONFIG = "config.json"  # the config of the run, complete
LOCK = ".running"  # held by the program that supervises the run; it stays when that has ended
LEAGUE = "league.sqlite"  # of a league: players, results, assignments
REPLAYS = "replays"  # of a league: games that evaluators kept
DEMONSTRATIONS = "demonstrations"  # recorded games that the run imitates
LABELS = "labels"  # recorded games of its imitator, labelled by the demonstrators
IMITATION = "imitation"  # checkpoints of imitation
IMITATED = "imitation_best"  # the imitator of lowest held-out loss, a directory of one snapshot
LIBRARY = "z.npz"  # z of the imitated winners
# The agents of a run, as command lines and configs name them: its imitator, the weights from which
# reinforcement learning started, and its newest ones.
AGENTS = ("imitation", "initial", "trained")


def learner_dir(run_dir: pathlib.Path, player: str) -> pathlib.Path:
  """Returns the directory of a league's learning player: checkpoints, results, diagnosis."""
  return run_dir / LEARNERS / player


def run_of(directory: pathlib.Path) -> pathlib.Path:
  """Returns the run of a directory: of a league's learning player the league's, else itself."""
  of_player = directory.parent.name == LEARNERS and not (directory / CONFIG).exists()
  return directory.parents[1] if of_player else directory


def snapshot_name(player: str) -> str:
  """Returns the path of a historical player's snapshot within its run's directory."""
  return f"{PLAYERS}/{player}"


def snapshot_path(run_dir: pathlib.Path, player: str) -> pathlib.Path:
  """Returns the snapshot of a league's historical player."""
  return run_dir / snapshot_name(player)
