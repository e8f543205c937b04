"""An agent of a2a-sdk 1.x that plays the script it is sent: JSON, one list for each step, the name first.

sse-starlette pings its streams every 200 ms instead of every 15 s.
"""

import asyncio
import json
import logging
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Task, TaskState, TaskStatus
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette

EventSourceResponse.DEFAULT_PING_INTERVAL = 0.2
PORT = int(sys.argv[1])
# A script may raise.
logging.disable(logging.CRITICAL)


class Scripted(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        await event_queue.enqueue_event(
            Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])
        )
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        for name, *args in json.loads(context.get_user_input()):
            if name == "status":
                state, *text = args
                message = updater.new_agent_message([Part(text=text[0])]) if text else None
                await updater.update_status(TaskState.Value(f"TASK_STATE_{state.upper()}"), message)
            elif name == "artifact":
                artifact_id, text, append, last = args
                parts = [Part(text=text)]
                await updater.add_artifact(parts, artifact_id=artifact_id, append=append, last_chunk=last)
            elif name == "pause":
                await asyncio.sleep(args[0])
            elif name == "raise":
                raise RuntimeError("a secret of the agent")

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="Scripted",
    description="Plays a script",
    version="1.0.0",
    supported_interfaces=[
        AgentInterface(url=f"http://127.0.0.1:{PORT}/", protocol_binding="JSONRPC", protocol_version="1.0")
    ],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="play", name="Play", description="Plays a script", tags=["play"])],
)
handler = DefaultRequestHandler(agent_executor=Scripted(), task_store=InMemoryTaskStore(), agent_card=card)
app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="critical")
