"""Messages for the fuzz test: bytes, damaged requests, and requests filled at random."""

import random

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

from starleague.environments.sc2.protocol import sc_pb

_NUMBERS = {
  Field.CPPTYPE_INT32: (0, 1, 2, 23, 320, 560, 3674, -1, 2 ** 31 - 1, -2 ** 31),
  Field.CPPTYPE_INT64: (0, 1, -1, 2 ** 63 - 1, -2 ** 63),
  Field.CPPTYPE_UINT32: (0, 1, 2, 8, 16, 2 ** 32 - 1),
  Field.CPPTYPE_UINT64: (0, 1, 2 ** 32 + 1, 2 ** 32 + (6 << 16) + 1, 2 ** 64 - 1),
  Field.CPPTYPE_FLOAT: (0.0, 0.5, 12.25, -3.0, 1e30, float("inf"), float("nan")),
  Field.CPPTYPE_DOUBLE: (0.0, 1.0, float("inf"), float("nan"))}
_TEXTS = ("", "Flat32", "Skirmish/SkirmishMiniOpen.SC2Map", "/", "../../etc/passwd", "\0",
          "ä" * 99)
_MOST_STEP = 16  # game loops: long steps would only take long


def _value(draw: random.Random, field: Field, depth: int):
  if field.cpp_type == Field.CPPTYPE_BOOL:
    return draw.random() < 0.5
  if field.cpp_type == Field.CPPTYPE_ENUM:
    return draw.choice(field.enum_type.values).number
  if field.cpp_type == Field.CPPTYPE_STRING:
    text = draw.choice(_TEXTS)
    return text.encode() if field.type == Field.TYPE_BYTES else text
  return draw.choice(_NUMBERS[field.cpp_type])


def fill(draw: random.Random, message: Message, depth: int = 4) -> None:
  """Sets fields of a message at random."""
  for field in message.DESCRIPTOR.fields:
    if draw.random() < (0.3 if field.containing_oneof is None else 0.5):
      continue
    if field.cpp_type == Field.CPPTYPE_MESSAGE:
      if depth <= 0:
        continue
      for _ in range(draw.randint(1, 3) if field.is_repeated else 1):
        part = getattr(message, field.name)
        fill(draw, part.add() if field.is_repeated else part, depth - 1)
        if not field.is_repeated:
          part.SetInParent()
    elif field.is_repeated:
      getattr(message, field.name).extend(
        _value(draw, field, depth) for _ in range(draw.randint(0, 3)))
    else:
      setattr(message, field.name, _value(draw, field, depth))


def request(draw: random.Random, kinds: tuple[str, ...]) -> sc_pb.Request:
  """Returns a request of one of these kinds, filled at random."""
  kind = draw.choice(kinds)
  message = sc_pb.Request()
  getattr(message, kind).SetInParent()
  fill(draw, getattr(message, kind))
  message.step.count = min(message.step.count, _MOST_STEP) if kind == "step" else 0
  if kind != "step":
    message.ClearField("step")
    getattr(message, kind).SetInParent()
  if draw.random() < 0.5:
    message.id = draw.choice((0, 1, 77, 2 ** 32 - 1))
  return message


def damaged(draw: random.Random, data: bytes) -> bytes:
  """Returns bytes with some of them flipped, cut off or repeated."""
  values = bytearray(data)
  for _ in range(draw.randint(1, 4)):
    if not values:
      break
    at, way = draw.randrange(len(values)), draw.randrange(3)
    if way == 0:
      values[at] ^= 1 << draw.randrange(8)
    elif way == 1:
      del values[at:]
    else:
      values[at:at] = values[at:at + 8]
  return bytes(values)
