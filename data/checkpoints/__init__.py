"""Weights on disk: checkpoints of runs and snapshots of players."""

from starleague.data.checkpoints.checkpoint_manifest import read_manifest
from starleague.data.checkpoints.store import (
  CheckpointDamagedError,
  CheckpointMismatchError,
  Checkpoints,
  DiskFullError,
  Restored,
  load_params,
  save_params,
)

__all__ = ["CheckpointDamagedError", "CheckpointMismatchError", "Checkpoints", "DiskFullError",
           "Restored", "load_params", "read_manifest", "save_params"]
