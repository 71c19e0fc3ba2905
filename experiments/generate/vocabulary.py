"""Writes the vocabulary's files, `agent/data/*.csv`, from pysc2's tables and a technology tree.

  python -m starleague.experiments.generate.vocabulary --techtree data.json.xz [--tables agent/data]

The files are committed, so `starleague.agent` needs neither source. Run this again when the game's
tables change. A test compares the committed files with the installed pysc2.
"""

import csv
import json
import lzma
import pathlib
from collections.abc import Iterable, Sequence

from absl import flags

from starleague.common import files
from starleague.common.errors import UserError
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags

_TECHTREE = flags.DEFINE_string(
  "techtree", None, "data.json or data.json.xz of the technology tree: its units' abilities say "
  "which unit types can execute a function.")
_OUTPUT = flags.DEFINE_string(
  "tables", str(pathlib.Path(__file__).resolve().parents[2] / "agent" / "data"),
  "Folder the CSV files are written to.")

# Critters differ only in looks. One class for all keeps the unit types within the 256 of the
# published agent (Vinyals et al. 2019, detailed architecture).
CRITTERS = frozenset({
  "CarrionBird", "KarakFemale", "KarakMale", "Lyote", "Scantipede", "ThornLizard", "UrsadakCalf",
  "UrsadakFemale", "UrsadakMale", "UtilityBot", "Crabeetle", "Dog", "Sheep", "Cow"})


class TechnologyTreeError(UserError):
  """A file that is no technology tree."""


def category(name: str) -> str:
  """The category of a function: the word before its first underscore, if known."""
  prefix = name.split("_")[0]
  if prefix in ("Train", "Build", "Research", "Morph", "Effect"):
    return prefix.lower()
  return "effect" if prefix in ("BurrowDown", "BurrowUp", "Behavior") else "other"


# Functions whose target must be on the camera: people aim them at the screen, never at the minimap
# (over 99.6% of the uses of each in replays; Mathieu et al. 2021, AlphaStar Unplugged). These are
# all that place or cast something, except effects of long range, and the following others.
ON_SCREEN = frozenset({"Attack_unit", "Harvest_Gather_unit", "Land_pt", "Load_unit",
                       "Morph_Root_pt", "Rally_Workers_unit", "UnloadAllAt_unit"})
FAR_REACHING = frozenset({
  "Build_CreepTumor_pt", "Effect_AdeptPhaseShift_pt", "Effect_Blink_pt", "Effect_Blink_unit",
  "Effect_CalldownMULE_pt", "Effect_Charge_pt", "Effect_Charge_unit", "Effect_ChronoBoost_unit",
  "Effect_Contaminate_unit", "Effect_EMP_unit", "Effect_FungalGrowth_unit",
  "Effect_InjectLarva_unit", "Effect_LocustSwoop_pt", "Effect_MassRecall_pt",
  "Effect_NukeCalldown_pt", "Effect_Repair_pt", "Effect_Scan_pt", "Effect_SpawnLocusts_pt",
  "Effect_SpawnLocusts_unit", "Effect_Spray_pt", "Effect_TacticalJump_pt",
  "Effect_ViperConsume_unit", "Effect_WidowMineAttack_pt", "Effect_WidowMineAttack_unit"})


def needs_screen(name: str, function_type: str) -> bool:
  """Whether a function's target must be on the camera."""
  if function_type not in ("raw_cmd_pt", "raw_cmd_unit"):
    return False
  aimed = name.split("_")[0] in ("Build", "TrainWarp", "Effect") and name not in FAR_REACHING
  return aimed or name in ON_SCREEN


def function_rows(actions) -> tuple[list[list], list[list]]:
  """Rows of functions.csv (the general functions) and aliases.csv (all raw ids -> index)."""
  general = [f for f in actions.RAW_FUNCTIONS if not f.general_id]
  index = {(f.ability_id, f.function_type.__name__): i for i, f in enumerate(general)}
  functions = [[i, int(f.id), f.name, f.ability_id, f.function_type.__name__, category(f.name),
                int(needs_screen(f.name, f.function_type.__name__))]
               for i, f in enumerate(general)]
  aliases = []
  for f in actions.RAW_FUNCTIONS:
    ability = f.general_id or f.ability_id
    aliases.append([int(f.id), index[ability, f.function_type.__name__], f.ability_id])
  return functions, aliases


def unit_rows(units) -> list[list]:
  """Rows of unit_types.csv: index, game id, name, race; index 0 is the unknown type."""
  rows: list[list] = [[0, 0, "Unknown", "None"]]
  critter = None
  for race in (units.Neutral, units.Terran, units.Protoss, units.Zerg):
    for unit in sorted(race, key=lambda u: u.value):
      if unit.name in CRITTERS and critter is not None:
        rows.append([critter, unit.value, unit.name, race.__name__])
        continue
      index = max(row[0] for row in rows) + 1
      if unit.name in CRITTERS:
        critter = index
      rows.append([index, unit.value, unit.name, race.__name__])
  return rows


def id_rows(enum) -> list[list]:
  """Rows of upgrades.csv and buffs.csv: index, game id, name; index 0 is the unknown one."""
  return [[0, 0, "Unknown"]] + [[i + 1, e.value, e.name]
                                for i, e in enumerate(sorted(enum, key=lambda e: e.value))]


# Everything under construction or in a queue can be cancelled; the technology tree lists two
# special cases only. A function without capable types can be executed by all.
CANCELS = frozenset({"Cancel_quick", "Cancel_Last_quick"})
# Skirmish has neither larvae nor add-ons as units: their structure executes their functions.
STANDS_FOR = {"Hatchery": ("Larva",), "Barracks": ("BarracksTechLab",),
              "Factory": ("FactoryTechLab",)}


def capability_rows(functions: Sequence[Sequence], aliases: Iterable[Sequence], units: Sequence,
                    techtree: dict) -> list[list]:
  """Rows of capabilities.csv: function index, the unit type indices that can execute it."""
  by_ability: dict[int, set[int]] = {}
  for _, index, ability in aliases:
    by_ability.setdefault(ability, set()).add(index)
  for row in functions:
    by_ability.setdefault(row[3], set()).add(row[0])
  remaps: dict[int, int] = {a["id"]: a["remaps_to_ability_id"] for a in techtree["Ability"]
            if a.get("remaps_to_ability_id")}
  unit_index = {row[1]: row[0] for row in units}
  capable: dict[int, set[int]] = {row[0]: set() for row in functions}
  for unit in techtree["Unit"]:
    if unit["id"] not in unit_index:
      continue
    for listed in unit["abilities"]:
      ability = listed["ability"]
      for known in {ability, remaps.get(ability, ability)}:
        for function in by_ability.get(known, ()):
          capable[function].add(unit_index[unit["id"]])
  by_name = {row[2]: row[0] for row in units}
  for row in functions:
    if row[2] in CANCELS:
      capable[row[0]] = set()
    for building, absent in STANDS_FOR.items():
      if any(by_name[name] in capable[row[0]] for name in absent):
        capable[row[0]].add(by_name[building])
  return [[function, " ".join(str(u) for u in sorted(types))]
          for function, types in capable.items()]


ATTRIBUTES = ("light", "armored", "biological", "mechanical", "psionic", "massive", "structure",
              "detector", "summoned", "flying", "addon", "burrowed", "heroic")


def initial_contents(name: str) -> tuple[int, int]:
  """The minerals and vespene in a resource of this type at the start of a game."""
  if name.endswith("Geyser"):
    return 0, 2500 if "Rich" in name else 2250
  if "MineralField" in name:
    amount = name.partition("MineralField")[2]
    return int(amount) if amount else 1500 if "Rich" in name else 1800, 0
  return 0, 0


def attribute_rows(units: Iterable[Sequence], techtree: dict) -> list[list]:
  """Rows of attributes.csv: unit type index, its ATTRIBUTES as 0 or 1, initial contents."""
  known = {unit["id"]: unit for unit in techtree["Unit"]}
  rows: dict[int, list] = {}
  for index, game_id, name, _ in units:
    unit = known.get(game_id, {})
    has = {attribute.lower() for attribute in unit.get("attributes", ())}
    has |= {attribute for attribute, present in (
      ("detector", unit.get("detection_range")), ("flying", unit.get("is_flying")),
      ("addon", unit.get("is_addon")), ("burrowed", "Burrowed" in name)) if present}
    row = [index, *(int(attribute in has) for attribute in ATTRIBUTES), *initial_contents(name)]
    rows.setdefault(index, row)
  return list(rows.values())


def write_csv(path: pathlib.Path, header: Sequence[str], rows: Iterable[Sequence]) -> None:
  """Writes a table atomically."""
  with files.replacing(path) as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def read_tree(path: pathlib.Path) -> dict:
  """Reads a technology tree, data.json or data.json.xz.

  Raises:
    OSError: the file cannot be read.
    TechnologyTreeError: it is no technology tree.
  """
  opener = lzma.open if path.suffix == ".xz" else open
  try:
    with opener(path, "rt") as file:
      tree = json.load(file)
  except (ValueError, EOFError, RecursionError, lzma.LZMAError) as error:
    raise TechnologyTreeError(f"{path}: expected JSON, found: {error}; download python-sc2's "
                              "data.json") from error
  missing = [key for key in ("Ability", "Unit", "Upgrade")
             if not isinstance(tree, dict) or not isinstance(tree.get(key), list) or not tree[key]]
  if missing:
    raise TechnologyTreeError(f"{path}: expected non-empty lists Ability, Unit and Upgrade of a "
                              f"technology tree, found none of {', '.join(missing)}")
  return tree


def main() -> None:
  from starleague.environments.sc2 import protocol
  techtree = read_tree(pathlib.Path(run_flags.given(_TECHTREE)))
  actions, units, upgrades, buffs = protocol.tables()
  output = pathlib.Path(_OUTPUT.value)
  functions, aliases = function_rows(actions)
  unit_types = unit_rows(units)
  write_csv(output / "functions.csv",
            ("index", "id", "name", "ability", "type", "category", "on_screen"), functions)
  write_csv(output / "aliases.csv", ("id", "index", "ability"), aliases)
  write_csv(output / "unit_types.csv", ("index", "id", "name", "race"), unit_types)
  write_csv(output / "upgrades.csv", ("index", "id", "name"), id_rows(upgrades.Upgrades))
  write_csv(output / "buffs.csv", ("index", "id", "name"), id_rows(buffs.Buffs))
  write_csv(output / "capabilities.csv", ("function", "unit_types"),
            capability_rows(functions, aliases, unit_types, techtree))
  write_csv(output / "attributes.csv",
            ("index", *ATTRIBUTES, "initial_minerals", "initial_vespene"),
            attribute_rows(unit_types, techtree))


if __name__ == "__main__":
  entry.run(main, required=["techtree"])
