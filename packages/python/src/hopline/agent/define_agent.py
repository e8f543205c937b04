"""Agents and their turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable, iscoroutinefunction, isgeneratorfunction
from typing import Any, TypeVar
from uuid import uuid4

from a2a.helpers import get_message_text
from a2a.types import Message, Part

from ..approval import Json
from .agent_events import AgentEvent, ToolEnd, ToolStart
from .stored_steps import StepError, Steps, run_step
from .tool_calls import ToolCalls, ToolError

T = TypeVar("T")


@dataclass(frozen=True)
class Approval:
    """The call of `needs_approval` in the previous turn, with the decision."""

    call_id: str
    tool: str
    arguments: Json
    """Those that the question showed. An answer has none."""
    approved: bool
    reason: str | None = None
    """Why not, in the words of the person, or why the answer does not count as an approval."""


@dataclass(frozen=True)
class Turn:
    """A message to the agent, and the task that it belongs to."""

    task_id: str
    context_id: str
    message: Message
    history: tuple[Message, ...] = ()
    """The earlier messages of the task: empty in its first turn, which a question ends."""
    approval: Approval | None = None
    """Set in the turn that answers `needs_approval`."""
    resume: Any = None
    """The `resume` of `needs_approval`."""
    _calls: ToolCalls | None = field(default=None, repr=False, compare=False)
    _steps: Steps | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The text of the message."""
        return get_message_text(self.message, "")

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(self.message.parts)

    async def tool(self, name: str, arguments: Mapping[str, Any], run: Callable[[], Awaitable[T]]) -> T:
        """
        Runs a tool: `sky = await turn.tool("weather", {"city": city}, lambda: forecast(city))`. Clients see the call, its arguments and its
        result. Raises what `run` raises; clients see that the call failed, and the message of a ToolError. With `turn.approval.arguments` it is the
        call that was approved.
        """
        calls = self._calls
        if calls is None:
            raise ValueError("only a turn that is being run or played has tools")
        approval = self.approval
        is_approved = approval is not None and approval.approved and approval.tool == name and approval.arguments is arguments
        # Clients have seen the approved call wait, so it keeps its id.
        call_id = approval.call_id if approval is not None and is_approved else str(uuid4())
        await calls.start(ToolStart(call_id, name, dict(arguments)))
        try:
            running = run()
            if not isawaitable(running):
                returned = type(running).__name__
                raise TypeError(f"tool {name}: run returned {returned}; it must be an async function, or a lambda that calls one")
            result = await running
        except (Exception, asyncio.CancelledError) as error:
            # The call also failed if it was canceled, for example by a time limit of the agent.
            await calls.end(ToolEnd(call_id, name, str(error) if isinstance(error, ToolError) else None, has_failed=True))
            raise
        await calls.end(ToolEnd(call_id, name, result))
        return result

    async def step(self, name: str, run: Callable[[str], Awaitable[T]]) -> T:
        """
        Runs `run` and stores its result in the log: `receipt = await turn.step("charge", lambda key: charge(card, key))`. If this process dies
        later, the next attempt gets the stored result instead of running the step again. What `run` raises is stored as well, and raised as
        StepFailed; unless the turn then fails as retryable and is repeated: the steps that failed last run again.

        `key` is the same for this step in every attempt: send it as the idempotency key of a request whose effect must not happen twice. The result
        is a JSON value of at most STEP_OUTCOME_BYTES_MAX bytes. A turn must make the same steps in the same order in each attempt.
        """
        if self._steps is None:
            raise StepError(f"step {name}: the client of this turn stores no steps; Hopline does, and play_turn")
        return await run_step(self._steps, name, run)


@dataclass(frozen=True)
class Agent:
    """`run` yields the answer as strings, byte for byte, and events made by `notice`, `artifact`, `tool_start`, `tool_end`, `needs_input`, `needs_approval` and `failed`."""

    name: str
    description: str
    run: Callable[[Turn], AsyncIterator[AgentEvent]]
    skills: Sequence[str] = field(default_factory=tuple)
    version: str = "1.0.0"

    def __post_init__(self) -> None:
        if isinstance(self.skills, str):
            raise TypeError(f"agent {self.name}: skills is a str; it must be a list of names")
        if not callable(self.run) or iscoroutinefunction(self.run) or isgeneratorfunction(self.run):
            raise TypeError(f"agent {self.name}: run must be an async generator: async def with yield")
