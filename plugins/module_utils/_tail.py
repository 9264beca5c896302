# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The new lines of a log, from now on, across its rotation.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

# So much of one look is read; what is above it is left out, because it must not hold up what the lines are read for.
MOST_BYTES = 4 << 20


class Tail:
    """One log; begins at its end. A file that is not there yet is read from its beginning when it comes."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._rest = b""
        self._stream: BinaryIO | None = None
        self._open()
        if self._stream:
            self._stream.seek(0, os.SEEK_END)

    def _open(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._stream = open(self.path, "rb")  # noqa: SIM115

    def lines(self) -> Iterator[str]:
        """What has come since the last look, whole lines only."""
        yield from self._read()
        if self._is_another():
            if self._stream:
                self._stream.close()
            self._stream, self._rest = None, b""
            self._open()
            yield from self._read()

    def _is_another(self) -> bool:
        """Is another file at this path now? Or the same one, emptied."""
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return False
        if self._stream is None:
            return True
        own = os.fstat(self._stream.fileno())
        return (own.st_ino, own.st_dev) != (there.st_ino, there.st_dev) or there.st_size < self._stream.tell()

    def _read(self) -> Iterator[str]:
        if self._stream is None:
            return
        behind = os.fstat(self._stream.fileno()).st_size - self._stream.tell()
        if behind > MOST_BYTES:
            self._stream.seek(behind - MOST_BYTES, os.SEEK_CUR)
            self._rest = b""
        *whole, self._rest = (self._rest + self._stream.read(MOST_BYTES)).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
