"""Text that grows by appends."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
_FIRST_HALF = re.compile("[\ud800-\udbff]")


def without_pairs(text: str) -> str:
    """Joins surrogates that a server has split over two events: Python, unlike JavaScript, keeps the halves apart. Others become U+FFFD."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class HalfPair:
    """Joins surrogates that a model or a file has split over two texts."""

    def __init__(self) -> None:
        self._held = ""

    def join(self, text: str) -> str:
        """The text without its last half, which waits for the next text."""
        text = self._held + text
        self._held = text[-1:] if _FIRST_HALF.match(text[-1:]) else ""
        return without_pairs(text[: len(text) - len(self._held)])

    def rest(self) -> str:
        rest, self._held = without_pairs(self._held), ""
        return rest


class TextSnapshot:
    """A text as it was at one moment. It is joined when it is read, so that an unread view costs nothing."""

    __slots__ = ("_count", "_pieces")

    def __init__(self, pieces: list[str], count: int) -> None:
        self._pieces = pieces
        self._count = count

    def read(self) -> str:
        return without_pairs("".join(self._pieces[: self._count]))


class GrowingText:
    """Pieces that are only appended. Appending does not copy the text before it."""

    __slots__ = ("_pieces", "length")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text] if text else []
        self.length = len(text)

    def append(self, piece: str) -> None:
        self._pieces.append(piece)
        self.length += len(piece)

    def snapshot(self) -> TextSnapshot:
        return TextSnapshot(self._pieces, len(self._pieces))

    def whole(self) -> str:
        """The text as it arrived. Joins the pieces once; snapshots keep the list that they had."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""
