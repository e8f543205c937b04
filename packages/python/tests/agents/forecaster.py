"""An agent that calls tools."""

import asyncio
from collections.abc import AsyncIterator

from hopline.agent import Agent, AgentEvent, ToolError, Turn, failed, tool_end, tool_start


async def sky_of(city: str) -> dict[str, object]:
    if city == "Atlantis":
        raise ToolError("no such city")
    return {"sky": "clear", "degrees": 21, "city": city}


async def forecast(turn: Turn) -> AsyncIterator[AgentEvent]:
    yield "Looking "
    try:
        found = await asyncio.gather(
            *(turn.tool("weather", {"city": city}, lambda city=city: sky_of(city)) for city in turn.text.split(", "))  # type: ignore[misc]
        )
    except ToolError as error:
        yield failed(str(error))
        return
    yield "up: "
    # A call that another library reports.
    yield tool_start("u-1", "units", {"system": "metric"})
    yield tool_end("u-1", "units", "°C")
    yield "; ".join(f"{one['city']} {one['sky']}" for one in found)


forecaster = Agent(name="forecaster", description="Forecasts the weather of cities", run=forecast)
