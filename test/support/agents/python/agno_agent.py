"""An Agno agent in the kit of packages/python: text, files, and calls of tools with arguments and results."""

import logging
import os
import sys

os.environ["AGNO_TELEMETRY"] = "false"

import uvicorn
from agno.agent import Agent as AgnoAgent
from agno.media import File, Image
from agno.models.openai.like import OpenAILike
from agno.run.agent import RunEvent
from hopline.agent import Agent, agent_app, failed, tool_end, tool_start

logging.disable(logging.CRITICAL)
PORT, MODEL_URL = int(sys.argv[1]), sys.argv[2]


def weather(city: str) -> dict:
    """The weather of a city."""
    return {"city": city, "sky": "clear"}


agno_agent = AgnoAgent(
    model=OpenAILike(id="stand-in", base_url=MODEL_URL, api_key="none", max_retries=0), tools=[weather], telemetry=False
)


async def run(turn):
    files = [part for part in turn.parts if part.HasField("raw")]
    is_image = lambda part: part.media_type.startswith("image/")
    images = [Image(content=part.raw, mime_type=part.media_type) for part in files if is_image(part)]
    others = [File(content=part.raw, mime_type=part.media_type, filename=part.filename) for part in files if not is_image(part)]
    async for event in agno_agent.arun(turn.text, images=images, files=others, stream=True, stream_events=True):
        if event.event == RunEvent.run_content:
            yield event.content
        elif event.event == RunEvent.tool_call_started:
            yield tool_start(event.tool.tool_call_id, event.tool.tool_name, event.tool.tool_args)
        elif event.event == RunEvent.tool_call_completed:
            call = event.tool
            yield tool_end(call.tool_call_id, call.tool_name, call.result, has_failed=bool(call.tool_call_error))
        elif event.event == RunEvent.run_error:
            # Agno reports a failed run as an event, and raises nothing.
            yield failed("the model failed")


if __name__ == "__main__":
    forecaster = Agent(name="forecaster", description="Forecasts", run=run)
    uvicorn.run(agent_app(forecaster, f"http://127.0.0.1:{PORT}/"), host="127.0.0.1", port=PORT, log_level="critical")
