"""The reasons for which a file is not read as a replay."""

# Each is a value of the column `reason` of the table of refusals.
NOT_A_REPLAY = "not a replay"
DAMAGED = "damaged"
TOO_LARGE = "too large"
UNSUPPORTED = "unsupported version"
NO_TRACKER = "no tracker events"
NOT_ONE_ON_ONE = "not 1v1"
NOT_MELEE = "not melee"
SKIRMISH = "a game of Skirmish"
DUPLICATE = "duplicate"
# Of the supervision of decoders; a resumed run tries such a file again.
TIME_LIMIT = "time limit"
MEMORY_LIMIT = "memory limit"
DECODER_DIED = "decoder died"
UNREADABLE = "unreadable"
PASSING = (TIME_LIMIT, MEMORY_LIMIT, DECODER_DIED, UNREADABLE)
REASONS = (NOT_A_REPLAY, DAMAGED, TOO_LARGE, UNSUPPORTED, NO_TRACKER, NOT_ONE_ON_ONE, NOT_MELEE,
           SKIRMISH, DUPLICATE, *PASSING)


class Refusal(Exception):
  """A file that is not read; `reason` is one of REASONS."""

  def __init__(self, reason: str, detail: str):
    super().__init__(detail)
    self.reason = reason
    self.detail = detail
