"""How experience and weights travel and rest: wire format, Reverb tables, datasets, z."""

from starleague.data.reverb.datasets import dataset
from starleague.data.reverb.server import make_server, make_tables
from starleague.data.z.statistics_library import StatisticsLibrary

__all__ = ["StatisticsLibrary", "dataset", "make_server", "make_tables"]
