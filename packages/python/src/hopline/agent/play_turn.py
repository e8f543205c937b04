"""Plays turns of an agent without a server, through the SDK's request handler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from a2a.server.context import ServerCallContext
from a2a.types import Message, Part, Role, SendMessageRequest
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict, ParseDict

from ..client_view import ClientView, Json, ViewFile, ViewTool
from ..view_fold import ViewFold
from .agent_executor import KitExecutor
from .agent_server import KitHandler
from .define_agent import Agent
from .stored_steps import PlayedStep, PlayedSteps


@dataclass(frozen=True)
class PlayedTurn:
    """What a client shows of a turn."""

    view: ClientView
    events: tuple[Json, ...]
    """Stream responses of A2A 1.0 as the agent's server sends them."""
    notices: tuple[str, ...]
    steps: tuple[PlayedStep, ...]
    """The stored steps of the turn; without those that run again if it failed as retryable."""
    _executor: KitExecutor = field(repr=False)
    _handler: KitHandler = field(repr=False)
    _fold: ViewFold = field(repr=False)

    @property
    def text(self) -> str:
        """The answer."""
        return self.view.answer

    @property
    def artifacts(self) -> tuple[ViewFile, ...]:
        """The artifacts beside the answer."""
        return self.view.files

    @property
    def tools(self) -> tuple[ViewTool, ...]:
        """The calls of tools in the task so far."""
        return self.view.tools

    @property
    def end(self) -> str:
        """The state of the task after the turn, such as TASK_STATE_COMPLETED."""
        return self.view.state

    @property
    def question(self) -> str | None:
        return None if self.view.question is None else self.view.question.text

    @property
    def failure(self) -> str | None:
        return self.view.failure

    async def answer(self, answer: str | Message | Sequence[Json]) -> PlayedTurn:
        """Plays the next turn of the task, which answers the question of this one: with a text, or parts such as those of `approval_response`."""
        message = _message(answer)
        message.task_id, message.context_id = self.view.task_id or "", self.view.context_id or ""
        return await _play(self._executor, self._handler, message, self._fold, ())


async def play_turn(agent: Agent, text: str | Message, *, steps: Sequence[PlayedStep] = ()) -> PlayedTurn:
    """
    Plays the first turn of a task. Its events pass the SDK's checks, and the result is what a client folds from them. If the agent raises, the
    turn fails as at a server, and the logger `hopline.agent` has the error. `steps`: those that an earlier attempt has stored, such as
    `first.steps[:1]` for the attempt that follows if the process dies after the first step.
    """
    executor = KitExecutor(agent)
    return await _play(executor, KitHandler(agent, "http://agent.invalid/", executor), _message(text), ViewFold(), steps)


async def _play(
    executor: KitExecutor, handler: KitHandler, message: Message, fold: ViewFold, steps: Sequence[PlayedStep]
) -> PlayedTurn:
    executor.played = played = PlayedSteps(steps)
    is_retried = False
    events: list[Json] = []
    notices: list[str] = []
    async for event in handler.on_message_send_stream(SendMessageRequest(message=message), ServerCallContext()):
        response: Json = MessageToDict(to_stream_response(event))
        events.append(response)
        fold.add(response)
        update = response.get("statusUpdate", {})
        is_retried = update.get("metadata", {}).get("retryable", False)
        status = update.get("status", {})
        if status.get("state") == "TASK_STATE_WORKING" and "message" in status:
            notices.append("".join(part.get("text", "") for part in status["message"]["parts"]))
    kept = played.kept(is_retried=is_retried)
    return PlayedTurn(fold.view, tuple(events), tuple(notices), kept, executor, handler, fold)


def _message(content: str | Message | Sequence[Json]) -> Message:
    if isinstance(content, Message):
        return content
    parts = [Part(text=content)] if isinstance(content, str) else [ParseDict(part, Part()) for part in content]
    return Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=parts)
