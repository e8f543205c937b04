"""A Pydantic AI agent with a tool behind AG-UI, whose model streams its answer."""

import sys

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

PORT = int(sys.argv[1])
WORDS = ["The", " answer", ":", " ", "ha", "ha", "\r\n\r\n", "**bold**", " ✅ done", " 👩‍👩‍👧"]


async def words(messages, _info):
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    if any(getattr(part, "content", None) == "fail" for part in parts):
        raise RuntimeError("the model has no words")
    if not any(isinstance(part, ToolReturnPart) for part in parts):
        yield {0: DeltaToolCall(name="weather", json_args='{"city":"Oslo"}', tool_call_id="call-1")}
        return
    for word in WORDS:
        yield word


agent = Agent(FunctionModel(stream_function=words))


@agent.tool_plain
def weather(city: str) -> str:
    """The weather of a city."""
    return "rain" if city == "Oslo" else "sun"


async def run(request):
    return await AGUIAdapter.dispatch_request(request, agent=agent)


async def card(_request):
    return JSONResponse({})


app = Starlette(
    routes=[Route("/agent", run, methods=["POST"]), Route("/.well-known/agent-card.json", card)]
)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="critical")
