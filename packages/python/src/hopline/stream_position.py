"""The position of a reader in the stream of a task over all its connections."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .a2a_events import TERMINAL_STATES, state_of, task_id_of
from .client_view import Json

BEGINNING = "0.0"
"""The cursor before the first event: with it a stream starts at the beginning of a task, even of one that has ended."""

_CURSOR = re.compile(r"([0-9]{1,15})\.[0-9]{1,15}")


@dataclass(frozen=True)
class StreamEvent:
    """One event of a task's stream, in the JSON of A2A 1.0. A later `events` with `cursor` continues after it."""

    event: Json
    cursor: str | None
    """None for a server without cursors."""


@dataclass(frozen=True)
class StreamGap:
    """Events are missing: they have expired, or the server cannot continue at this position. The next item is the current task."""

    missing: tuple[int, int] | None
    """The first and the last missing generation; None if the server does not know them."""


StreamItem = StreamEvent | StreamGap


class StreamPosition:
    """Turns the frames of connections into items, each event once."""

    def __init__(self, task_id: str | None, cursor: str | None, *, ends_at_input_required: bool) -> None:
        self.task_id = task_id
        self.cursor = cursor
        self.ended = False
        self.seen = False
        """True once an event has arrived."""
        self._ends_at_input_required = ends_at_input_required
        self._gap: StreamGap | None = None
        # After a gap, until a frame with a cursor: a server that has lost events continues before them.
        self._is_moved = False

    def connect(self) -> None:
        """Starts a connection. Without a cursor the server first sends the current task."""
        self._gap = StreamGap(None) if self.seen and self.cursor is None else None
        self._is_moved = False

    def gap(self, gap: StreamGap) -> None:
        """The gap is held for the next event, so that it is not repeated when its connection breaks at once."""
        self._gap = gap
        self._is_moved = True

    def accept(self, event: Json | None, cursor: str | None) -> list[StreamItem]:
        """`event` is None for an event of an unknown kind."""
        if cursor is not None:
            if not self._is_moved and _is_seen(cursor, self.cursor):
                return []
            self._is_moved = False
            self.cursor = cursor
        if event is None:
            return []
        self.seen = True
        self.task_id = self.task_id or task_id_of(event)
        self.ended = self._ends_at(event)
        items: list[StreamItem] = [] if self._gap is None else [self._gap]
        self._gap = None
        return [*items, StreamEvent(event, cursor)]

    def _ends_at(self, event: Json) -> bool:
        if "message" in event:
            return True
        state = state_of(event)
        return state in TERMINAL_STATES or (self._ends_at_input_required and state == "TASK_STATE_INPUT_REQUIRED")


def _is_seen(cursor: str, last: str | None) -> bool:
    """A Hopline cursor starts with the generation of its event, which only grows. An id of another server is a duplicate only if equal."""
    if last is None:
        return False
    one = _CURSOR.fullmatch(cursor)
    other = _CURSOR.fullmatch(last)
    return cursor == last if one is None or other is None else int(one[1]) <= int(other[1])
