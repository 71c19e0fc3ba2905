"""The installation folder of StarCraft II."""

import os
import pathlib

from starleague.common.errors import UserError

DOWNLOADS = "https://github.com/Blizzard/s2client-proto#downloads"
# Makes the folder that its argument names, with Skirmish in the game's place.
SERVER = "python -m starleague.environments.sc2.server.layout"


class InstallationError(UserError):
  """StarCraft II is not in the expected folder."""


def find() -> pathlib.Path:
  """Returns the folder of the game: $SC2PATH, or ~/StarCraftII.

  Raises:
    InstallationError: the folder has no game; the message says how to install it, or to play
      Skirmish in its place.
  """
  path = pathlib.Path(os.environ.get("SC2PATH") or "~/StarCraftII").expanduser()
  if not any(path.glob("Versions/Base*/SC2_x64")):
    raise InstallationError(
      f"StarCraft II: expected Versions/Base*/SC2_x64 in {path}, found none; download a Linux "
      f"package and map packs from {DOWNLOADS}, unpack the package, the map packs into its folder "
      "Maps, and set SC2PATH to the folder (docs/starcraft2.md has the steps); or play Skirmish in "
      f"its place: {SERVER} ~/SkirmishII, and set SC2PATH to that folder")
  return path
