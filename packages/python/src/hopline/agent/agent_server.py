"""Serves an agent over A2A 1.0: `uvicorn module:app`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill

from .agent_executor import KitExecutor
from .define_agent import Agent

if TYPE_CHECKING:
    from starlette.applications import Starlette


def agent_card(agent: Agent, url: str) -> AgentCard:
    """The card of an agent that is served at `url`."""
    names = agent.skills or (agent.description,)
    skills = [AgentSkill(id=f"skill-{n}", name=name, description=name, tags=[agent.name]) for n, name in enumerate(names, 1)]
    return AgentCard(
        name=agent.name,
        description=agent.description,
        version=agent.version,
        supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=skills,
    )


def handler_of(agent: Agent, url: str) -> DefaultRequestHandlerV2:
    """The SDK's request handler with this agent. Its tasks are in memory."""
    return DefaultRequestHandlerV2(KitExecutor(agent), InMemoryTaskStore(), agent_card(agent, url))


def agent_app(agent: Agent, url: str) -> Starlette:
    """An ASGI application, for uvicorn and other servers. `url` is its own address, which its card names."""
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from starlette.applications import Starlette

    routes = [*create_agent_card_routes(agent_card(agent, url)), *create_jsonrpc_routes(handler_of(agent, url), "/")]
    return Starlette(routes=routes)
