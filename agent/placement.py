"""Free cells: the cells of the location grid in which a structure may be placed.

A human player sees where a structure fits before placing it. The published agent has no such mask.
Without one a small agent memorises a few cells, and chooses them again when they are occupied.

The rules are those of Skirmish: structures and resources keep apart by their radii, stand on
buildable ground, and those of Zerg on creep. In StarCraft II footprints are squares, which may come
nearer than circles of these radii, and structures of Protoss need power: that game would need
another mask.
"""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from starleague.agent.types import Array, Observation
from starleague.agent.vocabulary import Arguments

# Positions in observations are cells of the 256 grid: a cell that may be free stays legal.
_TOLERANCE_CELLS = 1.0
# Structures by their radius in game units, in the game's data.
_STRUCTURES = {
  2.75: "CommandCenter OrbitalCommand Nexus Hatchery Lair",
  1.8125: "Barracks Factory Starport EngineeringBay Bunker Armory Gateway CyberneticsCore "
          "RoboticsFacility Stargate Forge TwilightCouncil WarpGate SpawningPool RoachWarren "
          "HydraliskDen EvolutionChamber",
  1.6875: "Refinery Assimilator Extractor",
  1.5: "DarkShrine",
  1.25: "SupplyDepot",
  1.125: "MissileTurret Pylon PhotonCannon Spire SpineCrawler",
  0.875: "SporeCrawler",
  0.7: "BarracksTechLab FactoryTechLab StarportTechLab BarracksReactor FactoryReactor "
       "StarportReactor",
}
_RESOURCE_RADIUS = 1.0


def _radii() -> np.ndarray:
  """Returns the radii in game units by unit type, [N] float32; 0 of what is no obstacle."""
  table = np.zeros(vocabulary.NUM_UNIT_TYPES, np.float32)
  for radius, names in _STRUCTURES.items():
    table[[vocabulary.UNIT_TYPES.index(name) for name in names.split()]] = radius
  resources = [i for i, name in enumerate(vocabulary.UNIT_TYPES.names)
               if "MineralField" in name or "Geyser" in name]
  table[resources] = _RESOURCE_RADIUS
  return table


def _products() -> np.ndarray:
  """Returns the type of the structure that a function places, [F] int32; 0: none."""
  table = np.zeros(vocabulary.NUM_FUNCTIONS, np.int32)
  for i, function in enumerate(vocabulary.FUNCTIONS.names):
    name = function.removeprefix("Build_").removesuffix("_pt")
    if function == f"Build_{name}_pt" and name in vocabulary.UNIT_TYPES.names and (
        vocabulary.ARGUMENT_TABLE[i, Arguments._fields.index("location")]):
      table[i] = vocabulary.UNIT_TYPES.index(name)
  return np.where(RADII[table] > 0, table, 0)


RADII = _radii()
PRODUCTS = _products()
_NEEDS_CREEP = (vocabulary.UNIT_RACES == "Zerg") & (
  np.array(vocabulary.UNIT_TYPES.names) != "Hatchery")
_BUILDABLE, _CREEP = (types.MINIMAP_PLANES.index(name) for name in ("buildable", "creep"))


def free_cells(observation: Observation, function: Array, size: int, map_units: float) -> jax.Array:
  """Returns the mask of the cells that are free for the structure of a function.

  Args:
    observation: of one player; rows that do not exist are zero.
    function: [] integer function index.
    size: L, of the location grid.
    map_units: side of the map in game units.

  Returns:
    [L * L] bool; all cells for other functions, and if no cell is free.
  """
  product = jnp.asarray(PRODUCTS)[jnp.clip(function, 0, len(PRODUCTS) - 1)]
  radius = jnp.asarray(RADII)[product]
  kind, x, y = (observation.entities[:, types.COLUMN[name]].astype(jnp.int32)
                for name in ("unit_type", "x", "y"))
  cell = map_units / types.POSITION_GRID
  middles = (np.arange(size, dtype=np.float32) + 0.5) * (map_units / size)
  across, down = (jnp.square(middles - (place[:, None] + 0.5) * cell) for place in (x, y))
  obstacle = jnp.asarray(RADII)[jnp.clip(kind, 0, len(RADII) - 1)]
  apart = jnp.square(obstacle + radius - _TOLERANCE_CELLS * cell)
  reach = jnp.where(obstacle > 0, apart, -1.0)[:, None] - across
  free = (down[:, :, None] >= reach[:, None]).all(axis=0)
  planes = observation.minimap
  nearest = np.floor((np.arange(size) + 0.5) * planes.shape[-1] / size).astype(int)
  buildable, creep = (planes[plane][nearest[:, None], nearest] > 0
                      for plane in (_BUILDABLE, _CREEP))
  free &= buildable & (creep | ~jnp.asarray(_NEEDS_CREEP)[product])
  inside = np.minimum(middles, map_units - middles) >= radius
  free &= inside[:, None] & inside
  return (free | (product == 0) | ~free.any()).reshape(-1)
