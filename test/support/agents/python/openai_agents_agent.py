"""An agent of the OpenAI Agents SDK in the kit of packages/python: text, files, and calls of tools with arguments and results."""

import json
import sys
from base64 import b64encode

import uvicorn
from agents import Agent as SdkAgent
from agents import OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from hopline.agent import Agent, agent_app, tool_end, tool_start
from openai import AsyncOpenAI

PORT, MODEL_URL = int(sys.argv[1]), sys.argv[2]
# Traces would go to OpenAI.
set_tracing_disabled(True)


@function_tool
def weather(city: str) -> dict:
    """The weather of a city."""
    return {"city": city, "sky": "clear"}


model = OpenAIChatCompletionsModel("stand-in", AsyncOpenAI(base_url=MODEL_URL, api_key="none", max_retries=0))
sdk_agent = SdkAgent(name="forecaster", instructions="Forecast.", tools=[weather], model=model)


def content_of(part):
    if part.HasField("text"):
        return {"type": "input_text", "text": part.text}
    data = f"data:{part.media_type};base64,{b64encode(part.raw).decode()}"
    if part.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": data}
    return {"type": "input_file", "file_data": data, "filename": part.filename}


async def run(turn):
    names = {}
    result = Runner.run_streamed(sdk_agent, [{"role": "user", "content": [content_of(part) for part in turn.parts]}])
    try:
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                yield event.data.delta
            elif event.type == "run_item_stream_event" and event.name == "tool_called":
                call = event.item.raw_item
                names[call.call_id] = call.name
                yield tool_start(call.call_id, call.name, json.loads(call.arguments))
            elif event.type == "run_item_stream_event" and event.name == "tool_output":
                call_id = event.item.raw_item["call_id"]
                yield tool_end(call_id, names[call_id], event.item.output)
    finally:
        # A canceled turn stops its model, too.
        result.cancel()


if __name__ == "__main__":
    forecaster = Agent(name="forecaster", description="Forecasts", run=run)
    uvicorn.run(agent_app(forecaster, f"http://127.0.0.1:{PORT}/"), host="127.0.0.1", port=PORT, log_level="critical")
