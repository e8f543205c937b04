"""What an agent yields: strings are its answer, and these are the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

from a2a.helpers import new_data_part
from a2a.types import Part


@dataclass(frozen=True)
class Notice:
    """A line about progress, which is not part of the answer."""

    text: str


@dataclass(frozen=True)
class Artifact:
    """A result beside the answer."""

    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Question:
    """Ends the turn. The next message of the task answers it."""

    text: str


@dataclass(frozen=True)
class Failure:
    """Ends the turn and fails the task, with a reason that clients see."""

    reason: str
    is_retryable: bool = False


@dataclass(frozen=True)
class ToolStart:
    """A call of a tool begins. `call_id` pairs it with its end."""

    call_id: str
    tool: str
    arguments: Any = None


@dataclass(frozen=True)
class ToolEnd:
    """A call of a tool ends."""

    call_id: str
    tool: str
    result: Any = None
    has_failed: bool = False


# An alias at run time, which CPython 3.10 evaluates.
AgentEvent = Union[str, Notice, Artifact, ToolStart, ToolEnd, Question, Failure]  # noqa: UP007


def notice(text: str) -> Notice:
    return Notice(text)


def artifact(
    name: str,
    *,
    text: str | None = None,
    raw: bytes | None = None,
    data: Any = None,
    media_type: str | None = None,
) -> Artifact:
    """A file with `text` or `raw` bytes, or `data` as JSON; at least one of them."""
    parts = []
    if text is not None:
        parts.append(Part(text=text, media_type=media_type or "", filename=name))
    if raw is not None:
        parts.append(Part(raw=raw, media_type=media_type or "application/octet-stream", filename=name))
    if data is not None:
        parts.append(new_data_part(data))
    if not parts:
        raise ValueError(f"artifact {name} has no content: give text, raw or data")
    return Artifact(name, tuple(parts))


def tool_start(call_id: str, tool: str, arguments: Any = None) -> ToolStart:
    """For a framework that reports the calls of its tools: `Turn.tool` is shorter where the agent itself calls."""
    return ToolStart(call_id, tool, arguments)


def tool_end(call_id: str, tool: str, result: Any = None, *, has_failed: bool = False) -> ToolEnd:
    return ToolEnd(call_id, tool, result, has_failed)


def needs_input(text: str) -> Question:
    return Question(text)


def failed(reason: str, *, is_retryable: bool = False) -> Failure:
    """`is_retryable`: Hopline repeats the call, as often as `retries` of the agent allows."""
    return Failure(reason, is_retryable)
