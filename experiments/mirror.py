"""Copies a run to a bucket from time to time, or back from there.

  python -m starleague.experiments.mirror --run_dir /runs/league --to gs://BUCKET/league
  python -m starleague.experiments.mirror --run_dir /runs/league --from gs://BUCKET/league

Only what is new is copied. The target must be empty, or have copies of this run. Ctrl-C and SIGTERM
end it after the files in progress. The same command completes a copy that was cut short.
"""

import pathlib

from absl import flags, logging

from starleague.common import stopping
from starleague.common.errors import UserError
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.processes import mirroring

flags.declare_key_flag("run_dir")
_TO = flags.DEFINE_string("to", None, "Place to copy the run to: gs://BUCKET/NAME, or a folder.")
_FROM = flags.DEFINE_string("from", None, "Place to copy the run from, to a new --run_dir.")
_INTERVAL_S = flags.DEFINE_float(
  "interval_s", 600.0, "Seconds between two copies; 0: a single one.", lower_bound=0.0,
  upper_bound=1e6)  # a wait has a limit


def main() -> None:
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR)).absolute()
  if (_TO.value is None) == (_FROM.value is None):
    raise UserError("expected either --to or --from.")
  if _FROM.value is not None:
    print(f"copied {mirroring.restore(mirroring.place(_FROM.value), run_dir)} files to {run_dir}")
    return
  if not run_dir.is_dir():
    raise UserError(f"{run_dir}: expected the directory of a run, found none.")
  stop = stopping.stop_event()
  source, target = mirroring.place(str(run_dir)), mirroring.place(run_flags.given(_TO))
  mirroring.claim(source, target)
  while True:
    try:
      logging.info("copied files=%d to=%s", mirroring.copy(source, target), target)
    except UserError:
      raise
    except Exception as error:
      if not _INTERVAL_S.value:
        raise
      # A bucket may be out of reach for a while: the next round copies what is missing.
      logging.error("copied in part to=%s error=%s", target, " ".join(str(error).split()))
    if not _INTERVAL_S.value or stop.wait(_INTERVAL_S.value):
      return


if __name__ == "__main__":
  entry.run(main, required=["run_dir"])
