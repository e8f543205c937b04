"""Serves an agent over A2A 1.0: `uvicorn module:app`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill

from .agent_executor import KitExecutor
from .define_agent import Agent
from .stored_steps import ANSWER_STEP, STEPS_EXTENSION_URI, StepAnswers

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

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


def handler_of(agent: Agent, url: str, executor: KitExecutor) -> DefaultRequestHandlerV2:
    """The SDK's request handler with this agent. Its tasks are in memory."""
    return DefaultRequestHandlerV2(executor, InMemoryTaskStore(), agent_card(agent, url))


def agent_app(agent: Agent, url: str) -> Starlette:
    """An ASGI application, for uvicorn and other servers. `url` is its own address, which its card names."""
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from starlette.applications import Starlette
    from starlette.routing import Route

    executor = KitExecutor(agent)
    (rpc,) = create_jsonrpc_routes(handler_of(agent, url, executor), "/")
    endpoint = _with_answers(executor.answers, rpc.endpoint)
    return Starlette(routes=[*create_agent_card_routes(agent_card(agent, url)), Route("/", endpoint, methods=["POST"])])


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
