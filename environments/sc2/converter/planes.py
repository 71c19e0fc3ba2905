"""Feature layers of the minimap as arrays."""

import numpy as np

from starleague.agent import types
from starleague.environments.sc2.protocol import common_pb, spatial_pb

# Planes of 0 and 1, sent as bits. The height map has all values, the others hold classes.
_BINARY = ("creep", "alerts", "pathable", "buildable")
_ONE = np.uint8(1)
# Planes that have another name in the protocol.
PROTOCOL_NAMES = {"visibility": "visibility_map"}
_DTYPES = {8: "u1", 16: "<u2", 32: "<i4"}  # by bits per pixel


def unpack(image: common_pb.ImageData) -> np.ndarray | None:
  """Returns the pixels of a feature layer: [rows, columns] integers, None if it has none.

  Pixels of one bit are packed with the highest bit first; bits behind the last pixel are padding.
  """
  width, height, bits = image.size.x, image.size.y, image.bits_per_pixel
  count = width * height
  if count <= 0 or bits not in (1, *_DTYPES) or len(image.data) * 8 < count * bits:
    return None
  if bits == 1:
    pixels = np.unpackbits(np.frombuffer(image.data, np.uint8), count=count)
  else:
    pixels = np.frombuffer(image.data, _DTYPES[bits], count)
  return pixels.reshape(height, width)


def minimap(layers: spatial_pb.FeatureLayersMinimap, size: int) -> np.ndarray:
  """Returns the planes of an observation: [7, size, size] uint8, `types.MINIMAP_PLANES`.

  Planes of another size are sampled at the nearest pixel; absent ones are zero.
  """
  planes = np.zeros((len(types.MINIMAP_PLANES), size, size), np.uint8)
  for plane, name in zip(planes, types.MINIMAP_PLANES, strict=True):
    pixels = unpack(getattr(layers, PROTOCOL_NAMES.get(name, name)))
    if pixels is None:
      continue
    if pixels.shape != (size, size):
      row, column = (
        ((np.arange(size) + 0.5) * (length / size)).astype(int) for length in pixels.shape)
      pixels = pixels[row[:, None], column]
    if pixels.dtype != np.uint8:
      pixels = np.clip(pixels, 0, 255)
    plane[:] = np.minimum(pixels, _ONE) if name in _BINARY else pixels
  return planes
