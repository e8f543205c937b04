"""Server-sent events, decoded (WHATWG HTML 9.2)."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from .errors import A2AError

_LINE_END = re.compile("\r\n|\r|\n")


@dataclass(frozen=True)
class ServerSentEvent:
    event: str
    data: str
    id: str | None


class EventStreamDecoder:
    """Accepts LF, CR and CRLF, comments, several data lines, and chunks that are split anywhere, even inside a code point."""

    def __init__(self, event_bytes_max: int) -> None:
        self._event_bytes_max = event_bytes_max
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest: list[str] = []
        self._data: list[str] = []
        self._held_bytes = 0
        self._event = ""
        self._id: str | None = None
        self._ends_with_cr = False
        self.retry_seconds: float = 0
        """The newest delay that the server requests before a reconnection."""

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that the chunk completes. Raises INVALID_AGENT_RESPONSE when an event is too large."""
        text = self._decoder.decode(chunk)
        if text != "":
            # The second half of a CRLF that two chunks share.
            is_line_end_known = self._ends_with_cr and text.startswith("\n")
            self._ends_with_cr = text.endswith("\r")
            text = text[1:] if is_line_end_known else text
        *lines, rest = _LINE_END.split(text)
        events: list[ServerSentEvent] = []
        for line in lines:
            self._hold(line)
            self._line("".join(self._rest), events)
            self._rest.clear()
        self._hold(rest)
        return events

    def _hold(self, piece: str) -> None:
        if piece == "":
            return
        self._rest.append(piece)
        self._held_bytes += len(piece) if piece.isascii() else len(piece.encode("utf-8", "replace"))
        if self._held_bytes > self._event_bytes_max:
            detail = f"an event of the stream exceeds {self._event_bytes_max} bytes"
            raise A2AError("INVALID_AGENT_RESPONSE", detail, retryable=False)

    def _line(self, line: str, events: list[ServerSentEvent]) -> None:
        if line == "":
            if self._data:
                events.append(ServerSentEvent(self._event or "message", "\n".join(self._data), self._id))
            self._data = []
            self._event = ""
            self._id = None
            self._held_bytes = 0
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and re.fullmatch("[0-9]{1,9}", value):
            self.retry_seconds = int(value) / 1000
