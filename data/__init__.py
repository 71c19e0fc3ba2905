"""How experience and weights travel and rest: wire format, Reverb tables, datasets, z."""

from starleague.data.datasets import dataset
from starleague.data.server import make_server, make_tables
from starleague.data.statistics import StatisticsLibrary

__all__ = ["StatisticsLibrary", "dataset", "make_server", "make_tables"]
