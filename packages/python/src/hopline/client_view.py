"""The task as a page shows it. The members have the meaning of packages/task-view/src/client-view.ts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from .growing_text import TextSnapshot, without_pairs

Json = dict[str, Any]
Channel = Literal["answer", "plan"]
Missing = Literal["beginning", "excess"] | None
Outcome = Literal["running", "completed", "failed", "waiting", "unknown"]


@dataclass(frozen=True, eq=False)
class ViewText:
    """A text of the answer or of the plan."""

    id: str
    """Id of the artifact or message."""
    channel: Channel
    agent: str | None
    """The agent that wrote it; None if the server does not name it."""
    call_id: str | None
    """The call that it answers."""
    turn: int
    is_complete: bool
    is_current: bool
    """The text belongs to the answer of the current turn."""
    _content: TextSnapshot = field(repr=False)

    @cached_property
    def text(self) -> str:
        return self._content.read()

    def to_json(self) -> Json:
        return _present(
            id=self.id,
            channel=self.channel,
            agent=self.agent,
            callId=self.call_id,
            turn=self.turn,
            text=self.text,
            isComplete=self.is_complete,
            isCurrent=self.is_current,
        )


@dataclass(frozen=True, eq=False)
class ViewTool:
    """A call of a tool, or of an agent by a supervisor."""

    id: str
    """Pairs the start of the call with its end."""
    tool: str
    agent: str | None
    """The agent that calls it."""
    turn: int
    outcome: Outcome
    """`waiting`: the agent asked a question while the call was open. `unknown`: the turn ended without the end of the call."""
    arguments: Any
    """None where the agent does not show them, as for `result`."""
    result: Any
    notice: str
    """The newest notice of the call, for people."""

    def to_json(self) -> Json:
        return _present(
            id=self.id,
            tool=self.tool,
            agent=self.agent,
            turn=self.turn,
            outcome=self.outcome,
            arguments=self.arguments,
            result=self.result,
            notice=self.notice,
        )


@dataclass(frozen=True, eq=False)
class ViewFile:
    """An artifact beside the answer: a file, data, or a report."""

    id: str
    name: str | None
    description: str | None
    agent: str | None
    turn: int
    bytes: int
    """Bytes of the content so far; a link has none."""
    missing: Missing
    """
    Why `parts` is not the whole content so far: the stream began within the artifact, or the files of the task have more than
    `FILE_BYTES_MAX`. None: it is whole.
    """
    is_complete: bool
    _content: tuple[Json | TextSnapshot, ...] = field(repr=False)

    @cached_property
    def parts(self) -> tuple[Json, ...]:
        """Parts of A2A 1.0."""
        return tuple({"text": part.read()} if isinstance(part, TextSnapshot) else part for part in self._content)

    def to_json(self) -> Json:
        return _present(
            id=self.id,
            name=self.name,
            description=self.description,
            agent=self.agent,
            turn=self.turn,
            parts=list(self.parts),
            bytes=self.bytes,
            missing=self.missing,
            isComplete=self.is_complete,
        )


@dataclass(frozen=True, eq=False)
class ViewQuestion:
    """Set while the task waits for the client."""

    kind: Literal["input", "auth"]
    """`auth`: the agent waits for an authorization outside the conversation."""
    text: str
    message: Json | None

    @cached_property
    def approval(self) -> Json | None:
        """The call that the agent asks to approve, with `callId`, `tool` and `arguments`; None for every other question."""
        if self.kind == "auth":
            return None
        for part in (self.message or {}).get("parts", []):
            data = part.get("data")
            request = data.get("approvalRequest") if isinstance(data, dict) else None
            if not isinstance(request, dict) or not isinstance(request.get("arguments"), dict):
                continue
            if all(isinstance(request.get(name), str) and request[name] != "" for name in ("callId", "tool")):
                return {name: request[name] for name in ("callId", "tool", "arguments")}
        return None

    def to_json(self) -> Json:
        return _present(kind=self.kind, text=self.text, message=self.message, approval=self.approval)


@dataclass(frozen=True, eq=False)
class ClientView:
    """A task as a page shows it. Views are immutable."""

    task_id: str | None
    """None until the first event, and for a server that answers with a message and creates no task."""
    context_id: str | None
    state: str
    """A state of A2A 1.0, such as TASK_STATE_WORKING."""
    turn: int
    """1 for the first message. An answer to a question begins the next turn."""
    cursor: str | None
    """Position in the stream, for servers that have cursors."""
    texts: tuple[ViewText, ...]
    """The texts of the answers and plans of all turns, in the order in which they began."""
    tools: tuple[ViewTool, ...]
    files: tuple[ViewFile, ...]
    progress: str | None
    """The newest line about progress; None when the turn has ended."""
    question: ViewQuestion | None
    failure: str | None
    """Why the task failed, was rejected or was canceled; None without a reason."""
    usage: dict[str, float] | None
    """Numbers that the server reports, such as `inputTokens`."""
    metadata: Json | None
    """Metadata of the task, merged from all its statuses."""
    gaps: int
    """Number of gaps: events that the server no longer had. The task that follows a gap contains their effect."""

    @cached_property
    def answer(self) -> str:
        """The answer of the current turn, each text once. Plans, notices, progress and files are not part of it."""
        return without_pairs("".join(self._current("answer")))

    @cached_property
    def plan(self) -> str:
        """The newest text of the plan, with those of servers below it; '' without one."""
        return without_pairs("\n".join(text for text in self._current("plan") if text != ""))

    def to_json(self) -> Json:
        """The view as the TypeScript client has it, for JSON; members without a value are absent."""
        return _present(
            taskId=self.task_id,
            contextId=self.context_id,
            state=self.state,
            turn=self.turn,
            cursor=self.cursor,
            answer=self.answer,
            texts=[text.to_json() for text in self.texts],
            plan=self.plan,
            tools=[tool.to_json() for tool in self.tools],
            files=[file.to_json() for file in self.files],
            progress=self.progress,
            question=self.question and self.question.to_json(),
            failure=self.failure,
            usage=self.usage,
            metadata=self.metadata,
            gaps=self.gaps,
        )

    def _current(self, channel: Channel) -> list[str]:
        return [text.text for text in self.texts if text.is_current and text.channel == channel]


def _present(**members: Any) -> Json:
    return {name: value for name, value in members.items() if value is not None}
