"""Serves the agents that only answer: `python3 -m tests.agents PORT PORT PORT`. One process, because importing the kit takes a second."""

import asyncio
import sys

import uvicorn

from hopline.agent import agent_app

from .forecaster import forecaster
from .greeter import greeter
from .refunder import refunder


async def serve() -> None:
    servers = []
    for agent, port in zip((greeter, refunder, forecaster), map(int, sys.argv[1:]), strict=True):
        app = agent_app(agent, f"http://127.0.0.1:{port}/")
        servers.append(uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")))
    await asyncio.gather(*(server.serve() for server in servers))


if __name__ == "__main__":
    asyncio.run(serve())
