"""What an agent yields: strings are its answer, and these are the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union
from uuid import uuid4

from a2a.helpers import new_data_part
from a2a.types import Part

from ..approval import Json, approval_question
from ..growing_text import without_pairs
from .json_value import JSON_LEVELS_MAX, is_deeper_than, json_value


@dataclass(frozen=True)
class Notice:
    """A line about progress, which is not part of the answer."""

    text: str

    def __post_init__(self) -> None:
        _check_text("notice", self.text)


@dataclass(frozen=True)
class Artifact:
    """A result beside the answer."""

    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Question:
    """Ends the turn. The next message of the task answers it."""

    text: str

    def __post_init__(self) -> None:
        _check_text("needs_input", self.text)


@dataclass(frozen=True)
class ApprovalQuestion(Question):
    """Ends the turn. The next message of the task approves or refuses the call."""

    call_id: str
    tool: str
    arguments: Json
    resume: Any = None


@dataclass(frozen=True)
class Failure:
    """Ends the turn and fails the task, with a reason that clients see."""

    reason: str
    is_retryable: bool = False

    def __post_init__(self) -> None:
        _check_text("failed", self.reason)


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


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{name} takes a string, not {type(text).__name__}")


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
    url: str | None = None,
    media_type: str | None = None,
) -> Artifact:
    """A file with `text` or `raw` bytes, its `url`, or `data` as JSON; at least one of them."""
    name = without_pairs(name)
    parts = []
    if text is not None:
        parts.append(Part(text=without_pairs(text), media_type=media_type or "", filename=name))
    if raw is not None:
        parts.append(Part(raw=raw, media_type=media_type or "application/octet-stream", filename=name))
    if url is not None:
        parts.append(Part(url=url, media_type=media_type or "", filename=name))
    if data is not None:
        parts.append(new_data_part(data))
    if not parts:
        raise ValueError(f"artifact {name} has no content: give text, raw, url or data")
    return Artifact(name, tuple(parts))


def tool_start(call_id: str, tool: str, arguments: Any = None) -> ToolStart:
    """For a framework that reports the calls of its tools: `Turn.tool` is shorter where the agent itself calls."""
    return ToolStart(call_id, tool, arguments)


def tool_end(call_id: str, tool: str, result: Any = None, *, has_failed: bool = False) -> ToolEnd:
    return ToolEnd(call_id, tool, result, has_failed)


def needs_input(text: str) -> Question:
    return Question(text)


def needs_approval(tool: str, arguments: Mapping[str, Any], question: str | None = None, resume: Any = None) -> ApprovalQuestion:
    """
    Asks a person to approve a call. The next turn of the task has the decision as `Turn.approval`, with these arguments, which no answer can
    change. `question`: by default one that names the tool and all arguments. `resume`: a JSON value, which comes back as `Turn.resume`.
    """
    if not isinstance(tool, str) or tool == "":
        raise TypeError(f"needs_approval: tool must be a non-empty string, not {tool!r}")
    if not isinstance(arguments, Mapping):
        raise TypeError(f"needs_approval: arguments must be a mapping, not {type(arguments).__name__}")
    if question is not None and (not isinstance(question, str) or question == ""):
        raise TypeError(f"needs_approval: question must be a non-empty string, not {question!r}")
    shown = _json_of("arguments", dict(arguments))
    if is_deeper_than(shown, JSON_LEVELS_MAX):
        raise ValueError(f"needs_approval: arguments has more than {JSON_LEVELS_MAX} levels of JSON")
    text = approval_question(tool, shown) if question is None else question
    return ApprovalQuestion(text, str(uuid4()), tool, shown, _json_of("resume", resume))


def _json_of(name: str, value: Any) -> Any:
    try:
        return json_value(value)[0]
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"needs_approval: {name} cannot be written as JSON: {error}") from None


def failed(reason: str, *, is_retryable: bool = False) -> Failure:
    """`is_retryable`: Hopline repeats the call, as often as `retries` of the agent allows."""
    return Failure(reason, is_retryable)
