"""Writes the tables that replays are read with, `data/replays/*.csv`, from public data.

  python -m starleague.experiments.generate.replay_tables \
    --links sc2reader/data/LotV --game_data data.pb.xz,...

A replay names an ability by its place in the game's catalogue (the link) and an index. Links
differ between builds. sc2reader (MIT licence) lists their names by build. The game's own
ResponseData says which ability a name and an index are, and how the game names unit types and
upgrades. The tables are committed, so `starleague.data.replays` needs neither source.
"""

import collections
import csv
import itertools
import lzma
import pathlib
import re
from collections.abc import Iterable, Sequence

from absl import flags

from starleague.agent import vocabulary as v
from starleague.common.errors import UserError
from starleague.data.replays.protocol import FIRST_LOTV
from starleague.experiments.generate.vocabulary import write_csv
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags

_LINKS = flags.DEFINE_string(
  "links", None, "Folder with sc2reader's BUILD_abilities.csv of Legacy of the Void.")
_GAME_DATA = flags.DEFINE_list(
  "game_data", None, "Serialised ResponseData of the game, .pb or .pb.xz; earlier ones win.")
_OUTPUT = flags.DEFINE_string(
  "replay_tables", str(pathlib.Path(__file__).resolve().parents[2] / "data" / "replays"),
  "Folder the CSV files are written to.")

_SUFFIX = "_abilities.csv"
_SCENERY = re.compile("Bridge|Door|Gate(Default|Diagonal|Straight)")  # parts of campaign maps
Links = dict[int, str]  # link -> name


class GameDataError(UserError):
  """A file or folder that does not hold the tables of the game."""


def read_links(folder: pathlib.Path, known: set[str]) -> dict[int, Links]:
  """Returns the links of each build that sc2reader lists.

  Some lists have the products of a link instead of its name: those links are left out.

  Args:
    folder: with the lists.
    known: names of links.

  Raises:
    GameDataError: the folder has no such files, or one holds something else.
  """
  tables = {}
  for path in sorted(folder.glob(f"*{_SUFFIX}")):
    name = path.name.removesuffix(_SUFFIX)
    try:
      build = FIRST_LOTV if name == "base" else int(name)
      with path.open(newline="") as file:
        rows = [(int(row[0]), row[1]) for row in csv.reader(file) if row]
    except (ValueError, IndexError, csv.Error) as error:
      raise GameDataError(f"{path}: expected the lines LINK,NAME of a build, found: {error}"
                          ) from error
    uses = collections.Counter(link for link, _ in rows)
    tables[build] = {link: name for link, name in rows if uses[link] == 1 and name in known}
  if not tables:
    raise GameDataError(f"{folder}: expected files *{_SUFFIX}, found none; download the package "
                        "sc2reader and give its data/LotV")
  return dict(sorted(tables.items()))


def fill_gaps(tables: dict[int, Links]) -> dict[int, Links]:
  """Returns the tables with gaps filled from other builds.

  Some lists lack names. Where two names of a list are as far apart in another build, the names
  between them are those of that build: the catalogue only ever grows at some places.
  """
  filled = {}
  for build, links in tables.items():
    found = dict(links)
    for other in sorted(tables, key=lambda b: abs(b - build)):
      place = {name: link for link, name in tables[other].items()}
      anchors = sorted(link for link, name in links.items() if name in place)
      for a, b in itertools.pairwise(anchors):
        shift = place[links[a]] - a
        if place[links[b]] - b == shift:
          for link in range(a + 1, b):
            name = tables[other].get(link + shift)
            if name and name not in links.values():
              found.setdefault(link, name)
    filled[build] = dict(sorted(found.items()))
  return filled


def read_game_data(path: pathlib.Path):
  """Returns a ResponseData.

  Raises:
    GameDataError: the file holds none.
  """
  from starleague.environments.sc2.protocol import sc_pb
  opener = lzma.open if path.suffix == ".xz" else open
  try:
    with opener(path, "rb") as file:
      data = sc_pb.ResponseData.FromString(file.read())
  except OSError as error:
    raise GameDataError(f"{path}: expected a serialised ResponseData, found no file that can be "
                        f"read: {error.strerror or error}") from error
  except Exception as error:  # protobuf's own classes differ between its versions
    raise GameDataError(f"{path}: expected a serialised ResponseData, found: {error}") from error
  if not data.abilities or not data.units or not data.upgrades:
    raise GameDataError(f"{path}: expected abilities, units and upgrades, found a ResponseData "
                        "without; ask the game for all of them")
  return data


def ability_rows(game_data: Sequence, names: Iterable[str]) -> list[list]:
  """Rows of abilities.csv: link name, index, game id of the ability that functions are named by."""
  wanted = {name for name in names if not _SCENERY.search(name)}
  rows: dict[tuple[str, int], int] = {}
  for data in game_data:
    for ability in data.abilities:
      general = ability.remaps_to_ability_id or ability.ability_id
      found = general if general in v.ABILITIES else ability.ability_id
      if ability.link_name in wanted and found in v.ABILITIES and found:
        rows.setdefault((ability.link_name, ability.link_index), found)
  return [[name, index, ability] for (name, index), ability in sorted(rows.items())]


def alias_rows(game_data: Sequence) -> list[list]:
  """Rows of names.csv: kind, the game's name, the vocabulary's name; where the two differ."""
  rows: dict[tuple[str, str], str] = {}
  for data in game_data:
    for kind, table, found in (
        ("unit", v.UNIT_TYPES, {unit.name: unit.unit_id for unit in data.units}),
        ("upgrade", v.UPGRADES, {upgrade.name: upgrade.upgrade_id for upgrade in data.upgrades})):
      for name, game_id in found.items():
        ours = table.names[table.from_id(game_id)]
        # Ids of recent units differ between versions, and are those of dummies in some.
        if table.from_id(game_id) and name not in ("", *table.names) and "Dummy" not in name:
          rows.setdefault((kind, name), ours)
  return [[kind, name, ours] for (kind, name), ours in sorted(rows.items())]


def link_rows(tables: dict[int, Links], names: set[str]) -> list[list]:
  """Rows of links.csv: link name, its link in each build, empty where it has none."""
  places = [{name: link for link, name in links.items()} for links in tables.values()]
  return [[name, *(place.get(name, "") for place in places)] for name in sorted(names)]


def main() -> None:
  game_data = [read_game_data(pathlib.Path(path)) for path in run_flags.given(_GAME_DATA)]
  known = {ability.link_name for data in game_data for ability in data.abilities}
  links = fill_gaps(read_links(pathlib.Path(run_flags.given(_LINKS)), known))
  abilities = ability_rows(game_data, {name for table in links.values() for name in table.values()})
  output = pathlib.Path(_OUTPUT.value)
  write_csv(output / "links.csv", ("name", *map(str, links)),
            link_rows(links, {row[0] for row in abilities}))
  write_csv(output / "abilities.csv", ("name", "index", "ability"), abilities)
  write_csv(output / "names.csv", ("kind", "game", "vocabulary"), alias_rows(game_data))


if __name__ == "__main__":
  entry.run(main, required=["links", "game_data"])
