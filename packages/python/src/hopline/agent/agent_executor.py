"""Runs an agent behind the SDK's request handler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

from a2a.helpers import new_data_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Message, Part, Role, Task, TaskState, TaskStatus
from google.protobuf.json_format import MessageToDict

from ..approval import read_approval_response
from ..growing_text import HalfPair, without_pairs
from .agent_events import AgentEvent, ApprovalQuestion, Artifact, Failure, Notice, Question, ToolEnd, ToolStart
from .define_agent import Agent, Approval, Turn
from .stored_steps import STEPS_EXTENSION_URI, PlayedSteps, RemoteSteps, StepAnswers
from .tool_calls import ToolCalls
from .turn_updater import TurnReaders, TurnUpdater

_log = logging.getLogger("hopline.agent")

# Clients learn that the agent failed. The error stays with its operator, because its text can have secrets.
FAILED = "the agent failed"


class KitExecutor(AgentExecutor):
    """Publishes what an agent yields: strings are chunks of one artifact, the answer."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.answers = StepAnswers()
        self.played: PlayedSteps | None = None
        """The steps of the turn that is played. A served turn stores its steps at its client."""
        self._asked: dict[str, ApprovalQuestion] = {}
        """The calls that wait for an approval, by task. They are in memory as the tasks are."""
        self._running: dict[str, TurnUpdater] = {}

    def forget(self, task_id: str) -> None:
        """The task is no longer known."""
        self._asked.pop(task_id, None)

    def readers_of(self, task_id: str) -> TurnReaders | None:
        """The streams that read the turn of the task; None while none runs."""
        updater = self._running.get(task_id)
        return None if updater is None else updater.readers

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message, task_id, context_id = context.message, context.task_id, context.context_id
        if message is None or task_id is None or context_id is None:
            raise ValueError("a turn needs a message")
        known = context.current_task
        if known is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(Task(id=task_id, context_id=context_id, status=status, history=[message]))
        updater = self._running[task_id] = TurnUpdater(event_queue, task_id, context_id)
        try:
            await self._turn(context, updater, message, known)
        finally:
            updater.end()
            del self._running[task_id]

    async def _turn(self, context: RequestContext, updater: TurnUpdater, message: Message, known: Task | None) -> None:
        task_id = updater.task_id
        await updater.start_work()
        history = () if known is None else tuple(one for one in known.history if one.message_id != message.message_id)
        calls = ToolCalls(updater)
        remote = RemoteSteps(updater, self.answers) if STEPS_EXTENSION_URI in context.requested_extensions else None
        # Not left for the next message, because that message answers only a question that its author has seen.
        asked = self._asked.pop(task_id, None)
        approval, resume = (None, None) if asked is None else (_approval(asked, message), asked.resume)
        turn = Turn(task_id, updater.context_id, message, history, approval, resume, calls, self.played or remote)
        answer = _Answer(updater)
        metadata: dict[str, Any] = {}
        try:
            end = await self._run(turn, updater, answer, calls)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # An agent may await a task that was canceled. The turn is over only if its own task is being canceled.
            is_cancellation = isinstance(error, asyncio.CancelledError)
            if is_cancellation and (updater.is_canceled or _is_being_canceled()):
                raise
            _log.exception("agent %s has failed in task %s", self._agent.name, task_id)
            end = Failure(FAILED)
        finally:
            if remote is not None:
                metadata = remote.close()
        await calls.end_all(end)
        await answer.close()
        if isinstance(end, ApprovalQuestion):
            self._asked[task_id] = end
        if isinstance(end, Question):
            state, text = TaskState.TASK_STATE_INPUT_REQUIRED, end.text
        elif isinstance(end, Failure):
            state, text = TaskState.TASK_STATE_FAILED, end.reason
            if end.is_retryable:
                metadata = {**metadata, "retryable": True}
        else:
            state, text = TaskState.TASK_STATE_COMPLETED, None
        parts = _request_parts(end) if isinstance(end, ApprovalQuestion) else []
        await updater.update_status(state, None if text is None else _message(turn, text, *parts), metadata=metadata or None)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        if context.task_id is None or context.context_id is None:
            raise ValueError("only a task can be canceled")
        self._asked.pop(context.task_id, None)
        running = self._running.get(context.task_id)
        if running is not None:
            # The agent may catch the cancellation that follows. Its next event then ends the turn.
            running.is_canceled = True
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def _run(self, turn: Turn, updater: TurnUpdater, answer: _Answer, calls: ToolCalls) -> Question | Failure | None:
        events = self._agent.run(turn)
        async with AsyncExitStack() as stack:
            if isinstance(events, AsyncGenerator):
                # Its `finally` and `async with` run before the turn ends, in the task in which they began.
                stack.push_async_callback(_close, events)
            async for event in events:
                if isinstance(event, str):
                    await answer.add(event)
                elif isinstance(event, Notice):
                    await updater.update_status(TaskState.TASK_STATE_WORKING, _message(turn, event.text))
                elif isinstance(event, Artifact):
                    await updater.add_artifact(list(event.parts), name=event.name, append=False, last_chunk=True)
                elif isinstance(event, ToolStart):
                    await calls.start(event)
                elif isinstance(event, ToolEnd):
                    await calls.end(event)
                elif isinstance(event, (Question, Failure)):
                    return event
                else:
                    raise TypeError(f"an agent yields strings and events of hopline.agent, not {type(event).__name__}")
        return None


async def _close(events: AsyncGenerator[AgentEvent, None]) -> None:
    try:
        await events.aclose()
    except BaseException as error:
        if not _is_exit(error):
            raise


def _is_exit(error: BaseException) -> bool:
    """Whether a generator was closed. A task group around its `yield` wraps the GeneratorExit into a group of exceptions."""
    inner = getattr(error, "exceptions", None)
    return isinstance(error, GeneratorExit) or (isinstance(inner, tuple) and all(map(_is_exit, inner)))


def _is_being_canceled() -> bool:
    # Python 3.10 does not show it, so there each cancellation counts as one of the turn.
    cancelling = getattr(asyncio.current_task(), "cancelling", None)
    return cancelling is None or cancelling() > 0


class _Answer:
    """The artifact with the answer. It begins with the first text."""

    def __init__(self, updater: TurnUpdater) -> None:
        self._updater = updater
        self._id = str(uuid4())
        self._has_begun = False
        self._half = HalfPair()

    async def add(self, text: str) -> None:
        whole = self._half.join(text)
        if whole != "":
            await self._send(whole, last=False)

    async def close(self) -> None:
        rest = self._half.rest()
        if self._has_begun or rest != "":
            await self._send(rest, last=True)

    async def _send(self, text: str, *, last: bool) -> None:
        part = Part(text=text)
        await self._updater.add_artifact([part], self._id, name="response", append=self._has_begun, last_chunk=last)
        self._has_begun = True


def _approval(asked: ApprovalQuestion, message: Message) -> Approval:
    parts = MessageToDict(message).get("parts", [])
    return Approval(asked.call_id, asked.tool, asked.arguments, *read_approval_response(parts, asked.call_id))


def _request_parts(asked: ApprovalQuestion) -> list[Part]:
    request = {"callId": asked.call_id, "tool": asked.tool, "arguments": asked.arguments}
    return [new_data_part({"approvalRequest": request})]


def _message(turn: Turn, text: str, *others: Part) -> Message:
    ids = {"message_id": str(uuid4()), "task_id": turn.task_id, "context_id": turn.context_id}
    return Message(role=Role.ROLE_AGENT, parts=[Part(text=without_pairs(text)), *others], **ids)
