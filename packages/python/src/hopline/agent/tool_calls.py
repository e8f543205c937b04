"""Shows the calls of tools as the artifacts that Hopline and the views of its clients read (packages/profiles/src/tool-notices.ts)."""

from __future__ import annotations

import json
from typing import Any

from a2a.types import Part

from ..growing_text import without_pairs
from .agent_events import Failure, Question, ToolEnd, ToolStart
from .json_value import JSON_LEVELS_MAX, is_deeper_than
from .turn_updater import TurnUpdater

# Bytes of JSON that clients see, the same as in packages/agent/src/limits.ts.
TOOL_ARGUMENTS_BYTES_MAX = 16 * 1024
TOOL_RESULT_BYTES_MAX = 64 * 1024
TURN_TOOL_BYTES_MAX = 2 * 1024 * 1024

# The member that marks a cut value, as in packages/agent/src/tool-values.ts. Its value is the number of bytes of the uncut value.
CUT_KEY = "hopline.cut"


class ToolError(Exception):
    """An error of a tool whose message clients may see. That of any other error only the agent's author sees."""


class ToolCalls:
    """The calls of one turn."""

    def __init__(self, updater: TurnUpdater) -> None:
        self._updater = updater
        self._open: dict[str, str] = {}
        self._bytes = 0

    async def start(self, event: ToolStart) -> None:
        self._updater.assert_open()
        _check(event)
        if event.call_id in self._open:
            raise ValueError(f"call {event.call_id} of tool {event.tool} has already begun")
        self._open[event.call_id] = event.tool
        values = self._values("arguments", event.arguments, TOOL_ARGUMENTS_BYTES_MAX)
        await self._show("start", f"🔧 Calling tool: {event.tool}\n", event, values)

    async def end(self, event: ToolEnd) -> None:
        self._updater.assert_open()
        _check(event)
        if self._open.pop(event.call_id, None) != event.tool:
            raise ValueError(f"call {event.call_id} of tool {event.tool} ended without beginning")
        values = self._values("result", event.result, TOOL_RESULT_BYTES_MAX)
        if event.has_failed:
            await self._show("end", f"❌ Tool {event.tool} failed\n", event, {**values, "failed": True})
        else:
            await self._show("end", f"✅ Tool {event.tool} completed\n", event, values)

    async def end_all(self, end: Question | Failure | None) -> None:
        """The turn has ended: open calls fail with it, or wait for the answer to its question."""
        for call_id, tool in list(self._open.items()):
            if isinstance(end, Question):
                del self._open[call_id]
                await self._show("end", f"⏸️ Tool {tool} is waiting\n", ToolEnd(call_id, tool), {"waiting": True})
            else:
                await self.end(ToolEnd(call_id, tool, has_failed=isinstance(end, Failure)))

    async def _show(self, phase: str, text: str, event: ToolStart | ToolEnd, values: dict[str, Any]) -> None:
        metadata = {"tool": without_pairs(event.tool), "toolCallId": without_pairs(event.call_id), **values}
        name = f"tool_notification_{phase}"
        await self._updater.add_artifact(
            [Part(text=without_pairs(text))], name=name, metadata=metadata, append=False, last_chunk=True
        )

    def _values(self, member: str, value: Any, bytes_max: int) -> dict[str, Any]:
        """The value, or its beginning if it is larger or deeper than clients see. Without a form in JSON it is left out."""
        if value is None:
            return {}
        try:
            # A lone surrogate has no form in UTF-8.
            encoded = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        except (TypeError, ValueError, RecursionError):
            return {}
        size, text = len(encoded), encoded.decode()
        rest = min(bytes_max, TURN_TOOL_BYTES_MAX - self._bytes)
        whole = json.loads(text)
        if size > rest or is_deeper_than(whole, JSON_LEVELS_MAX):
            begin = _beginning(whole if isinstance(whole, str) else text, rest)
            self._bytes += len(json.dumps(begin, ensure_ascii=False).encode())
            return {member: {CUT_KEY: size, "text": begin}}
        self._bytes += size
        # Uses the parsed form, because a protobuf object accepts no tuples and no numbers as keys.
        return {member: whole}


def _check(event: ToolStart | ToolEnd) -> None:
    for name in ("call_id", "tool"):
        value = getattr(event, name)
        if not isinstance(value, str) or value == "":
            raise TypeError(f"{name} of a call must be a non-empty string, not {value!r}")


def _beginning(text: str, bytes_max: int) -> str:
    """The longest beginning, within a factor of two, that has at most `bytes_max` bytes as JSON."""
    kept = text[: max(0, bytes_max)]
    while kept != "" and len(json.dumps(kept, ensure_ascii=False).encode()) > bytes_max:
        kept = kept[: len(kept) // 2]
    return kept
