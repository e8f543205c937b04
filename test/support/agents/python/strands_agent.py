"""A Strands agent whose model streams its answer. A second argument makes it stream as A2A means it, in one artifact."""

import logging
import sys

import uvicorn
from strands import Agent
from strands.models import Model
from strands.multiagent.a2a import A2AServer

logging.disable(logging.CRITICAL)
PORT = int(sys.argv[1])
WORDS = ["The", " answer", ":", " ", "ha", "ha", "\r\n\r\n", "**bold**", " ✅ done", " 👩‍👩‍👧"]


class Streaming(Model):
    def update_config(self, **model_config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, output_model, prompt, system_prompt=None, **kwargs):
        raise NotImplementedError
        yield

    async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        for word in WORDS:
            yield {"contentBlockDelta": {"delta": {"text": word}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


agent = Agent(model=Streaming(), name="streaming", description="Streams", callback_handler=None)
server = A2AServer(agent, host="127.0.0.1", port=PORT, enable_a2a_compliant_streaming=len(sys.argv) > 2)

if __name__ == "__main__":
    uvicorn.run(server.to_starlette_app(), host="127.0.0.1", port=PORT, log_level="critical")
