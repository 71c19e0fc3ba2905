"""Numbers of the rules, and the integer codes that the state and the tables use.

Distances are in map units and times in game loops, at 22.4 loops a second. Combat runs at the pace
of the real game. Economy and production run `Tier.tempo` times as fast: their times here are those
of the real game.
"""

RACES = ("Terran", "Protoss", "Zerg")
ATTRIBUTES = ("Light", "Armored", "Biological", "Mechanical")
# Attributes that upgrades change.
EFFECTS = ("damage", "bonus", "armour", "shield", "speed", "range", "health", "stim")

# Time.
LOOPS_PER_TICK = 4
TICKS_PER_STEP = 2
LOOPS_PER_STEP = LOOPS_PER_TICK * TICKS_PER_STEP
LOOPS_PER_SECOND = 16.0  # at "normal" speed, in which the tables give speeds and cooldowns

# Verbs: activities of units. The verb of a function is the activity it gives to capable units.
# A unit with the verb BOARD goes to its transport, a transport with LOAD to its passenger. Units
# with the verb ABOARD are passengers and off the map.
(IDLE, MOVE, ATTACK, ATTACK_UNIT, HOLD, GATHER, BUILD, CONSTRUCT, PATROL, REPAIR,
 RETURN, BOARD, LOAD, UNLOAD, ABOARD) = range(15)
# Kinds of targets.
NO_TARGET, OWN, ENEMY, RESOURCE = range(4)
# Targets of orders to unload: all passengers at a place, all at once, one. Others are slots.
ALL_PASSENGERS, HERE, FIRST_PASSENGER = -1, -2, -3
# Kinds of functions.
OTHER, COMMAND, BUILDING, TRAINING, ABILITY, ATTACHING, WARPING = range(7)
# Kinds of add-ons.
NO_ADD_ON, TECH_LAB, REACTOR = range(3)
# Abilities: effects without a unit order.
(NO_ABILITY, STIM, SIEGE, UNSIEGE, SCAN, INJECT, BOOST, RALLY, CANCEL, CANCEL_LAST, CLOAK,
 DECLOAK, PHASE, UNPHASE, GUARD, FORCE_FIELD, HALLUCINATE) = range(17)

# Production.
QUEUE_LENGTH = 5
START_ENERGY = 50.0  # of new units and of structures when finished
STARTING_HEALTH = 0.1  # share of its health with which construction of a structure begins
LARVA_LOOPS = 176  # 11 seconds
SPAWNED_LARVAE_LIMIT = 3  # a hatchery with as many larvae spawns no more
INJECTED_LARVAE = 3
LARVAE_LIMIT = 19  # of a hatchery, injections included
WARP_IN_LOOPS = 80  # 5 seconds: a unit's warp-in, the first part of its gate's cooldown
REFUND = 0.75  # share of its price that a structure cancelled during construction returns

# Mining.
LOAD_MINERALS, LOAD_VESPENE = 5, 4  # of a worker
WORKERS_PER_PATCH, WORKERS_PER_GEYSER = 2, 3  # as many mine at full rate

# Distances, between middles unless stated.
PATCH_RADIUS = 1.0
TOWNHALL_REACH = 7.0  # from a town hall to the resources of its base
MINING_REACH = 1.5  # from a worker to its patch
DROP_REACH = 3.5  # from a worker to the town hall that takes its load
BUILD_REACH = 0.8  # from a builder to the edge of its site
REPAIR_REACH = 1.0  # from an SCV to the edge of its target
HEAL_REACH = 4.0
GEYSER_SNAP = 3.0  # a gas structure ordered this near to a geyser is placed on it
SAME_PLACE = 1.0  # a gas structure stands on a geyser that is nearer than this
ADD_ON_OFFSET = (2.5, 0.5)  # from a structure to its add-on: to the right, a little below
CREEP_RADIUS = 10.0  # around a finished hatchery
SCAN_RADIUS = 13.0
POWER_RADIUS = 6.5  # around a finished Pylon
PRISM_POWER_RADIUS = 3.75  # around a Warp Prism in phasing mode
# From a transport to a unit that it takes in. A Marine's edge touches a Medivac's, a Zealot's is
# six from a Warp Prism's: the range of patch 4.10, not compared with another source.
LOADING_REACH = {"Terran": 1.125, "Protoss": 7.375, "Zerg": 1.125}
OFF_MAP = 1e3  # x and y of passengers on their player's side, beyond anybody's sight and range
LINE_HALF_WIDTH = 0.55  # of a flame; the radius of a unit is added

# Abilities.
ENERGY_COST = {SCAN: 50.0, BOOST: 50.0, INJECT: 25.0, GUARD: 75.0, FORCE_FIELD: 50.0,
               HALLUCINATE: 75.0}
CLOAK_COST = 25.0  # energy for switching it on
STIM_COST = {"Marine": 10.0, "Marauder": 20.0}  # hit points
STIM_LOOPS, STIM_SPEED = 176, 1.5
SIEGE_LOOPS = 43.0  # before a tank shoots after a change of mode
PHASE_LOOPS = 24.0  # before a Warp Prism gives power after its change of mode
SCAN_LOOPS = 196
BOOST_LOOPS = 320
INJECT_LOOPS = 464
GUARD_LOOPS, GUARD_RADIUS = 240, 4.5  # Guardian Shield: 15 seconds
GUARD_ARMOUR = 2.0  # against weapons with more than MELEE_RANGE
MELEE_RANGE = 1.0
MOST_GUARDS = 4  # Guardian Shields of a player that have an effect
FORCE_FIELD_LOOPS, FORCE_FIELD_RADIUS, FORCE_FIELD_RANGE = 240, 1.7, 9.0
MOST_FORCE_FIELDS = 4  # of a player; one more replaces the oldest
HALLUCINATION_LOOPS = 960  # 60 seconds
HALLUCINATION_DAMAGE = 2.0  # factor of the damage that a hallucination takes
HALLUCINATIONS = {  # the number that a Sentry makes at a time
  "Probe": 4, "Zealot": 2, "Stalker": 2, "Adept": 2, "HighTemplar": 2, "Immortal": 1,
  "Colossus": 1, "Disruptor": 1, "WarpPrism": 1, "Phoenix": 1, "VoidRay": 1, "Oracle": 1,
  "Archon": 1}

# Recovery, a game loop.
ENERGY_PER_LOOP = 0.5625 / 16
CLOAK_ENERGY_PER_LOOP = 0.9 / 16  # that a Banshee's cloak takes
SHIELD_PER_LOOP, SHIELD_DELAY = 2.0 / 16, 160  # shields recover after as many loops without damage
REGENERATION_PER_LOOP = 0.2734 / 16  # hit points of Zerg
HEAL_PER_LOOP, HEALTH_PER_ENERGY = 9.0 / 16, 3.0
REPAIR_COST = 0.25  # share of the mineral price for a repair from zero to full health

# Combat.
DEAD_HEALTH = 0.01  # units with no more health are dead
MINIMUM_DAMAGE = 0.5  # of a hit, after armour
SPLASH_SHARE = 0.5  # of the damage, for targets beside the one aimed at
ACQUISITION_RANGE = 3.5  # beyond the weapon's range: units engage enemies this near
ARRIVED, ATTACK_ARRIVED = 0.75, 1.5  # distances from the goal at which moves and attacks end
CROWDED = 0.5  # share of the disc around a goal that the own units there fill when orders end
