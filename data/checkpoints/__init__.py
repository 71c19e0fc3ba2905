"""Weights on disk: checkpoints of runs and snapshots of players."""

from starleague.data.checkpoints.checkpoint_manifest import read_manifest
from starleague.data.checkpoints.store import (
  CheckpointDamagedError,
  CheckpointMismatchError,
  Checkpoints,
  DiskFullError,
  Restored,
  find,
  load_params,
  load_params_and_step,
  save_params,
)

UNUSABLE = (CheckpointDamagedError, CheckpointMismatchError)  # reading it again is of no use

__all__ = ["CheckpointDamagedError", "CheckpointMismatchError", "Checkpoints", "DiskFullError",
           "Restored", "UNUSABLE", "find", "load_params", "load_params_and_step", "read_manifest",
           "save_params"]
