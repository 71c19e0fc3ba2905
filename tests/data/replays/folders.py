"""Folders of replays, read to tables."""

from starleague.data.replays import reading, tables, workers

LIMITS = workers.Limits(seconds=60.0, megabytes=500)


def run(folder, out, **more):
  with tables.Store(out) as store:
    return reading.read(reading.find([folder]), store, 1, LIMITS, **more)
