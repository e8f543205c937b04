"""A Pydantic AI agent behind fasta2a whose model streams its answer."""

import sys

import uvicorn
from fasta2a.pydantic_ai import agent_to_a2a
from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel

PORT = int(sys.argv[1])
WORDS = ["The", " answer", ":", " ", "ha", "ha", "\r\n\r\n", "**bold**", " ✅ done", " 👩‍👩‍👧"]


async def words(_messages, _info):
    for word in WORDS:
        yield word


app = agent_to_a2a(Agent(FunctionModel(stream_function=words)), url=f"http://127.0.0.1:{PORT}")

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="critical")
