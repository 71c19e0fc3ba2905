"""Text for people: counts, durations and the names of files."""


def duration(seconds: float) -> str:
  """Returns a duration as `7s`, `2m05s`, `3h04m` or `2d03h`."""
  whole = round(max(0.0, seconds))
  if whole < 60:
    return f"{whole}s"
  if whole < 3600:
    return f"{whole // 60}m{whole % 60:02d}s"
  if whole < 86400:
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
  return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def count(value: float) -> str:
  """Returns a count as `950`, `9 500`, `12.3 k`, `4.56 M`, `7.89 G`, `1.23 T` or `1 000 T`."""
  for least, scale, unit in ((999.5e9, 1e12, "T"), (999.5e6, 1e9, "G"), (999.5e3, 1e6, "M"),
                             (9999.5, 1e3, "k")):
    if abs(value) >= least:
      scaled = value / scale
      # Only the largest unit has numbers of four digits, which "g" writes as powers of ten.
      number = format(scaled, "#.3g").rstrip(".") if abs(scaled) < 999.5 else _whole(scaled)
      return f"{number} {unit}"
  return _whole(value)


def _whole(value: float) -> str:
  """Returns a rounded number with spaces between thousands, and no sign before 0."""
  return f"{value:z,.0f}".replace(",", " ")


def printable(text: str) -> str:
  """Returns a text whose undecodable bytes, as file names may have, are escaped: `\\xff`."""
  return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
