"""Serves an agent over A2A 1.0: `uvicorn module:app`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
)

from .agent_executor import KitExecutor
from .define_agent import Agent
from .recent_tasks import RecentTasks
from .stored_steps import ANSWER_STEP, STEPS_EXTENSION_URI, StepAnswers
from .turn_updater import STREAM, TurnReaders

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

# After the drain, how long the code of turns that were cut off may clean up. Kubernetes kills a process after 30 s.
CLEAN_UP_SECONDS_MAX = 5.0
# After a question, how long the SDK keeps three asyncio tasks for the answer. Later it starts them again.
QUESTION_SECONDS = 60.0

# JSON-RPC: the task has no such request, as for a task that is not known.
_NOT_FOUND = -32001


def agent_card(agent: Agent, url: str) -> AgentCard:
    """The card of an agent that is served at `url`."""
    names = agent.skills or (agent.description,)
    skills = [AgentSkill(id=f"skill-{n}", name=name, description=name, tags=[agent.name]) for n, name in enumerate(names, 1)]
    steps = AgentExtension(uri=STEPS_EXTENSION_URI, description="The client stores the results of steps for the next attempt.")
    return AgentCard(
        name=agent.name,
        description=agent.description,
        version=agent.version,
        supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True, extensions=[steps]),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=skills,
    )


class KitHandler(DefaultRequestHandlerV2):
    """The SDK's request handler with an agent. Its tasks are in memory. An agent waits for streams that read more slowly than it writes."""

    def __init__(self, agent: Agent, url: str, executor: KitExecutor) -> None:
        store = RecentTasks(executor.forget)
        super().__init__(executor, store, agent_card(agent, url), interrupted_task_timeout=QUESTION_SECONDS)
        self._executor = executor

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Message | Task:
        await self._add_context(params.message, context)
        result: Message | Task = await super().on_message_send(params, context)
        return result

    async def on_message_send_stream(self, params: SendMessageRequest, context: ServerCallContext) -> AsyncGenerator[Event, None]:
        await self._add_context(params.message, context)
        readers = TurnReaders()
        STREAM.set(readers)
        async with aclosing(self._read(super().on_message_send_stream(params, context), readers)) as events:
            async for event in events:
                yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        readers = self._executor.readers_of(params.id)
        async with aclosing(self._read(super().on_subscribe_to_task(params, context), readers)) as events:
            async for event in events:
                yield event

    async def _add_context(self, message: Message, context: ServerCallContext) -> None:
        """An answer may name only its task. The SDK would create a context for it, and then refuse that once it has released the task."""
        if message.task_id != "" and message.context_id == "":
            task = await self.task_store.get(message.task_id, context)
            message.context_id = task.context_id if isinstance(task, Task) else ""

    async def _read(self, events: AsyncGenerator[Event, None], readers: TurnReaders | None) -> AsyncGenerator[Event, None]:
        async with aclosing(events):
            if readers is None:
                async for event in events:
                    yield event
                return
            reader, taken = object(), readers.published
            try:
                readers.join(reader, taken)
                async for event in events:
                    taken += 1
                    readers.join(reader, taken)
                    yield event
            finally:
                readers.leave(reader)


def agent_app(agent: Agent, url: str, *, drain_seconds: float = 20.0) -> Starlette:
    """
    An ASGI application, for uvicorn and other servers. `url` is its own address, which its card names. A server that shuts down continues its
    streams until their turns end, for at most `drain_seconds`. Turns that take longer are canceled, and Hopline runs them again elsewhere.
    """
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from starlette.applications import Starlette
    from starlette.routing import Route

    executor = KitExecutor(agent)
    handler = KitHandler(agent, url, executor)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        # uvicorn ends the process after this, without the `finally` of tasks that still run.
        await asyncio.wait([asyncio.create_task(handler.aclose())], timeout=CLEAN_UP_SECONDS_MAX)

    (rpc,) = create_jsonrpc_routes(handler, "/", shutdown_grace_period=drain_seconds)
    endpoint = _with_answers(executor.answers, rpc.endpoint)
    routes = [*create_agent_card_routes(agent_card(agent, url)), Route("/", endpoint, methods=["POST"])]
    return Starlette(routes=routes, lifespan=lifespan)


def _with_answers(
    answers: StepAnswers, rpc: Callable[[Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of the SDK, and the method of the extension for stored steps, which the SDK does not know."""
    from starlette.responses import JSONResponse

    async def endpoint(request: Request) -> Response:
        try:
            # Starlette keeps the body for the SDK.
            body = await request.json()
        except ValueError:
            body = None
        if not isinstance(body, dict) or body.get("method") != ANSWER_STEP:
            return await rpc(request)
        response = {"jsonrpc": "2.0", "id": body.get("id")}
        if answers.take(body.get("params")):
            return JSONResponse({**response, "result": {}})
        return JSONResponse({**response, "error": {"code": _NOT_FOUND, "message": "no step waits for this answer"}})

    return endpoint
