"""Skirmish as StarCraft II: `python -m starleague.environments.sc2.server -port 5000`.

Takes the real game's flags; those that concern windows, graphics and versions have no effect.
"""

import argparse
import asyncio
import logging
import os
import pathlib
import sys

_CACHE = "STARLEAGUE_SERVER_CACHE"  # folder of compiled programs; empty: none is kept


def parse(arguments: list[str]) -> argparse.Namespace:
  """Parses the flags that have an effect; others and their values are ignored."""
  parser = argparse.ArgumentParser(prog="SC2_x64", allow_abbrev=False, add_help=False)
  # Without "-h", which would take the game's "-headlessNoRender" for itself.
  parser.add_argument("-help", "--help", action="help", help="shows this text")
  parser.add_argument("-listen", default="127.0.0.1", help="address")
  parser.add_argument("-port", type=_port, default=5000, help="of the websocket")
  parser.add_argument("-dataDir", default="", help="the installation, with a folder Maps")
  parser.add_argument("-idleSeconds", type=float, default=300.0,
                      help="to the end of a server without clients; 0: it never ends")
  parser.add_argument("-verbose", action="store_true", help="logs requests")
  return parser.parse_known_args(arguments)[0]


def _port(text: str) -> int:
  port = int(text)
  if not 0 <= port < 2 ** 16:
    raise argparse.ArgumentTypeError(f"expected 0 to {2 ** 16 - 1}, found {port}")
  return port


def use_cache() -> None:
  """Keeps compiled programs in a folder of the user, so that later processes start fast."""
  import jax

  folder = os.environ.get(_CACHE)
  if folder is None:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "starleague", f"server-{jax.__version__}")
  if not folder or os.environ.get("JAX_COMPILATION_CACHE_DIR"):
    return
  try:
    os.makedirs(folder, mode=0o700, exist_ok=True)
  except OSError:
    return
  # Cached programs are executed: a folder of another user is not to be trusted.
  if os.stat(folder).st_uid == os.getuid():
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    from starleague.environments.sc2.server.game import exported

    exported.keep_in(pathlib.Path(folder) / "programs")


def main() -> None:
  """Runs the server."""
  flags = parse(sys.argv[1:])
  os.environ["JAX_PLATFORMS"] = "cpu"  # read when JAX is imported
  logging.basicConfig(
    level=logging.INFO if flags.verbose else logging.WARNING, stream=sys.stderr,
    format="%(asctime)s sc2 server: %(message)s")
  use_cache()
  from starleague.environments.sc2.server.sessions import connection

  folder = pathlib.Path(flags.dataDir) if flags.dataDir else None
  if folder is not None and not (folder / "Maps").is_dir():
    folder = None
  try:
    asyncio.run(connection.run(flags.listen, flags.port, folder, flags.idleSeconds))
  except (OSError, UnicodeError) as error:  # UnicodeError: no name of a host
    sys.exit(f"sc2 server: cannot listen on {flags.listen}:{flags.port}: {error}")


if __name__ == "__main__":
  main()
