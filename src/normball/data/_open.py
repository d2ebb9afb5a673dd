"""What kind of file it is, told by its first bytes, and its text, whatever it is packed in."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import cast

from normball.data.table import TableError, show

__all__ = ["DAMAGE", "Text", "kind_of"]

# What the standard library raises for files that are cut or damaged; OSError comes from gzip and bz2.
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError, RuntimeError)

_MAGIC = (
    (b"PAR1", "parquet"),
    (b"\x89HDF\r\n\x1a\n", "h5ad"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
)
_NOT_TABLES = (
    (b"\xd0\xcf\x11\xe0", "an old Excel file (xls): save it as xlsx or CSV"),
    (b"\x93NUMPY", "a bare NumPy array: save it with its names by np.savez(path, X=..., feature_names=...)"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"{\\rtf", "a text document (RTF)"),
    (b"<!DOCTYPE", "a web page: was it saved in place of the table?"),
    (b"<html", "a web page: was it saved in place of the table?"),
    (b"\x28\xb5\x2f\xfd", "packed by Zstandard: unpack it first, or pack it by gzip, bz2, xz or zip"),
    (b"7z\xbc\xaf", "a 7z archive: unpack it first"),
    (b"ARROW1", "a Feather file: save it as Parquet"),
)


def kind_of(path: Path) -> str:
    """Return ``parquet``, ``h5ad``, ``xlsx``, ``npz``, ``zip``, ``gzip``, ``bz2``, ``xz`` or ``plain``."""
    name = show(path.name)
    if path.is_dir():
        raise TableError(f"{name}: expected a file, got a folder")
    with path.open("rb") as file:
        head = file.read(16)
    if not head:
        raise TableError(f"{name}: the file is empty")
    for magic, what in _NOT_TABLES:
        if head.startswith(magic):
            raise TableError(f"{name}: not a table but {what}")
    kind = next((kind for magic, kind in _MAGIC if head.startswith(magic)), "plain")
    if kind == "zip":
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.namelist()
        except DAMAGE as error:
            raise TableError(f"{name}: the zip archive is cut or damaged ({error})") from error
        if "[Content_Types].xml" in members:
            return "xlsx"
        if members and all(member.endswith(".npy") for member in members):
            return "npz"
    if kind == "plain":
        wanted = {".parquet": "parquet", ".h5ad": "h5ad", ".xlsx": "xlsx", ".npz": "npz"}.get(path.suffix.lower())
        packed = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}.get(path.suffix.lower())
        if wanted or packed:
            raise TableError(f"{name}: the file is damaged, or no {wanted or packed} file in spite of its name")
    return kind


class Text:
    """The lines of a text file, unpacked and decoded, with a count of the bytes taken from the disk."""

    longest_line = 1 << 28  # characters; more is no table, and would fill the memory

    def __init__(self, path: Path, kind: str, encoding: str | None) -> None:
        self.name = show(path.name)
        self.size = path.stat().st_size
        self.line = 0
        self.ended = True  # whether the last line had its end
        self.notes = [] if kind == "plain" else [f"unpacked from {kind}"]
        self._disk = path.open("rb")
        try:
            self._binary = self._unpacked(kind)
            self.encoding = encoding or self._encoding_of(self._peek())
            self._text = io.TextIOWrapper(self._binary, encoding=self.encoding, newline="")
        except LookupError as error:
            self._disk.close()
            raise TableError(f"encoding: expected one that Python knows, such as 'utf-8', got {encoding!r}") from error
        except TableError:
            self._disk.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._text.close()
        self._disk.close()

    def consumed(self) -> int:
        """Bytes of the file on disk that were read so far."""
        return self._disk.tell()

    def __iter__(self) -> Text:
        return self

    def __next__(self) -> str:
        try:
            line = self._text.readline(self.longest_line)
        except DAMAGE as error:
            raise TableError(f"{self.name}: the file is cut or damaged after line {self.line} ({error})") from error
        if not line:
            raise StopIteration
        self.line += 1
        self.ended = line[-1] in "\r\n"
        if len(line) >= self.longest_line:
            raise TableError(f"{self.name}, line {self.line}: longer than {self.longest_line >> 20} MB; not a table")
        if "\0" in line:
            raise TableError(f"{self.name}, line {self.line}: holds a zero byte; the file is binary or damaged")
        return line

    def _unpacked(self, kind: str) -> io.BufferedReader:
        if kind == "plain":
            return self._disk
        if kind == "gzip":
            return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=self._disk)), 1 << 20)
        if kind == "bz2":
            return io.BufferedReader(cast(io.RawIOBase, bz2.BZ2File(self._disk)), 1 << 20)
        if kind == "xz":
            return io.BufferedReader(cast(io.RawIOBase, lzma.LZMAFile(self._disk)), 1 << 20)
        archive = zipfile.ZipFile(self._disk)
        files = [m for m in archive.namelist() if not m.endswith("/") and not m.startswith(("__MACOSX", "."))]
        if len(files) != 1:
            several = ", ".join(show(member) for member in files[:5]) or "nothing"
            raise TableError(f"{self.name}: expected one file in the zip archive, got {several}")
        try:
            return io.BufferedReader(cast(io.RawIOBase, archive.open(files[0])), 1 << 20)
        except DAMAGE as error:
            raise TableError(f"{self.name}: {show(files[0])} cannot be unpacked ({error})") from error

    def _peek(self) -> bytes:
        try:
            return self._binary.peek(4096)[: 1 << 16]
        except DAMAGE as error:
            raise TableError(f"{self.name}: the file is cut or damaged ({error})") from error

    def _encoding_of(self, head: bytes) -> str:
        if head.startswith(b"\xef\xbb\xbf"):
            return "utf-8-sig"
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            return "utf-16"
        if not head:
            raise TableError(f"{self.name}: the file is empty")
        pairs = len(head) // 2
        if b"\0" in head:
            if head[1::2].count(0) > 0.7 * pairs:
                return "utf-16-le"
            if head[0::2].count(0) > 0.7 * pairs:
                return "utf-16-be"
            raise TableError(f"{self.name}: not a table but a binary file")
        control = sum(head.count(bytes([code])) for code in range(32) if code not in (9, 10, 13, 27))
        if control > 0.05 * len(head):
            raise TableError(f"{self.name}: not a table but a binary file")
        return "utf-8"
