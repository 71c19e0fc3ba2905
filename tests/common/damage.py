"""Kinds of damage to .npz files, for the tests of all their readers."""

import io
import struct
import warnings
import zipfile

import numpy as np


def members(path):
  """Returns the entries of a file by the names of arrays: .npy files as bytes."""
  with zipfile.ZipFile(path) as archive:
    return {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}


def write(path, entries, suffix=".npy"):
  with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
    for name, data in entries.items():
      archive.writestr(f"{name}{suffix}", data)


def npy(array, **options):
  file = io.BytesIO()
  np.lib.format.write_array(file, array, **options)
  return file.getvalue()


def array_of(data):
  return np.lib.format.read_array(io.BytesIO(data))


def header(descr, shape, fortran_order=False, version=1):
  """Returns the header of a .npy file, of any content."""
  text = f"{{'descr': {descr}, 'fortran_order': {fortran_order}, 'shape': {shape}, }}\n".encode()
  return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(text)) + text


def of_array(change):
  """Returns a damage that changes one array."""
  def damage(path, name):
    entries = members(path)
    write(path, entries | {name: npy(change(array_of(entries[name])), allow_pickle=True)})
  return damage


def of_entry(change):
  """Returns a damage that changes the bytes of one array's .npy file."""
  def damage(path, name):
    entries = members(path)
    write(path, entries | {name: change(entries[name])})
  return damage


def of_file(change):
  """Returns a damage that changes the bytes of the file."""
  def damage(path, name):
    path.write_bytes(change(path.read_bytes()))
  return damage


def _folder(path, name):
  path.unlink()
  path.mkdir()


def _nothing(path, name):
  write(path, {})


def _missing(path, name):
  write(path, {key: data for key, data in members(path).items() if key != name})


def _extra(path, name):
  entries = members(path)
  write(path, entries | {"notes": entries[name]})


def _no_npy(path, name):
  write(path, members(path), suffix=".txt")


def _twice(path, name):
  with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
    warnings.simplefilter("ignore")
    archive.writestr(f"{name}.npy", members(path)[name])


def _flipped(path, name):
  """Flips a bit of the array's compressed data."""
  with zipfile.ZipFile(path) as archive:
    info = archive.getinfo(f"{name}.npy")
  data = bytearray(path.read_bytes())
  lengths = struct.unpack_from("<HH", data, info.header_offset + 26)
  data[info.header_offset + 30 + sum(lengths) + info.compress_size // 2] ^= 0x10
  path.write_bytes(data)


def directory_field(offset, layout, value):
  """Returns a damage that changes a field of the array's entry in the zip directory."""
  def damage(path, name):
    data = bytearray(path.read_bytes())
    place = data.rindex(f"{name}.npy".encode())  # the directory comes last
    struct.pack_into(layout, data, place - 46 + offset, value)
    path.write_bytes(data)
  return damage


def _stored(path, name):
  """Claims more bytes than there are, without compression."""
  entries = members(path)
  with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
    for key, data in entries.items():
      archive.writestr(f"{key}.npy", data)
  directory_field(24, "<I", 2 ** 31)(path, name)


def _huge(path, name):
  """A zip bomb: a small file that decompresses to 128 MB, as its header says."""
  entries = members(path)
  rows = 2 ** 21
  with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
    for key, data in entries.items():
      if key != name:
        archive.writestr(f"{key}.npy", data)
    with archive.open(f"{name}.npy", "w") as file:
      file.write(header("'<f8'", (rows, 8)))
      for _ in range(rows * 64 // 2 ** 24):
        file.write(bytes(2 ** 24))


def _object(array):
  return np.full(array.shape, None, object)


# By name: changes `path`, an .npz file, at the array `name` of at least one axis and two rows.
KINDS = {
  "empty": of_file(lambda data: b""),
  "truncated": of_file(lambda data: data[:len(data) // 2]),
  "one byte short": of_file(lambda data: data[:-1]),
  "text": of_file(lambda data: b"no arrays\n" * 20),
  "one array": of_file(lambda data: npy(np.zeros(3))),
  "directory only": of_file(lambda data: data[data.index(b"PK\1\2"):]),
  "folder": _folder,
  "no arrays": _nothing,
  "missing": _missing,
  "extra": _extra,
  "no npy": _no_npy,
  "twice": _twice,
  "flipped bit": _flipped,
  "encrypted": directory_field(8, "<H", 1),
  "unknown compression": directory_field(10, "<H", 99),
  "other checksum": directory_field(16, "<I", 12345),
  "claimed size": _stored,
  "header of another entry": directory_field(42, "<I", 3),
  "huge": _huge,
  "float64": of_array(lambda array: np.zeros(array.shape, np.float64)),
  "big endian": of_array(lambda array: np.zeros(array.shape, ">i2")),
  "complex": of_array(lambda array: np.zeros(array.shape, np.complex64)),
  "dates": of_array(lambda array: np.zeros(array.shape, "M8[s]")),
  "characters": of_array(lambda array: np.full(array.shape, "one")),
  "objects": of_array(_object),
  "fields": of_array(lambda array: np.zeros(array.shape, [("a", np.int32)])),
  "row less": of_array(lambda array: array[:-1]),
  "row more": of_array(lambda array: np.concatenate([array, array[:1]])),
  "axis more": of_array(lambda array: array[..., None]),
  "scalar": of_array(lambda array: array[(0,) * array.ndim]),
  "no rows": of_array(lambda array: array[:0]),
  "header only": of_entry(lambda data: data[:10]),
  "no data": of_entry(lambda data: data[:10 + data[8] + 256 * data[9]]),
  "short data": of_entry(lambda data: data[:-1]),
  "long data": of_entry(lambda data: data + b"\0"),
  "no magic": of_entry(lambda data: b"numpy!" + data[6:]),
  "format version": of_entry(lambda data: data[:6] + b"\x09" + data[7:]),
  "long header": of_entry(lambda data: data[:8] + b"\xff\xff" + data[10:]),
  "nested header": of_entry(lambda data: header("'|u1'", "(" * 5000)),
  "header of code": of_entry(lambda data: header("__import__('os').getcwd()", "(3,)")),
  "negative shape": of_entry(lambda data: header("'|u1'", "(-3,)")),
  "claimed shape": of_entry(lambda data: header("'|u1'", f"({2 ** 62}, 256)")),
  "endless shape": of_entry(lambda data: header("'|u1'", f"({'9' * 5000},)")),
  "pickle": of_entry(lambda data: header("'|O'", "(3,)") + b"\x80\x04N."),
}


# Those after which the other arrays of the file are sound: the message names the array.
OF_ARRAYS = frozenset(KINDS) - {
  "empty", "truncated", "one byte short", "text", "one array", "directory only", "folder",
  "no arrays", "extra", "no npy"}


def check_message(text, path, name):
  """Asserts that a message has one line, the file, expected and found, and no library's text.

  Args:
    text: the message.
    path: the file.
    name: the array that must be named; "": any.
  """
  assert "\n" not in text and text.startswith(f"{path}: {name}")
  assert len(text) < 700 + len(str(path))
  assert "expected" in text and "found" in text
  for raw in ("Errno", "zip file", "zlib", "EOF", "numpy.load", "allow_pickle", "object at 0x",
              "codec", "Error", "literal"):
    assert raw not in text, text
