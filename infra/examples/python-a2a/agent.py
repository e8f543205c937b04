"""An A2A 1.0 agent made with a2a-sdk 1.x. It contains nothing specific to Hopline.

    python3 -m venv .venv
    .venv/bin/python3 -m pip install "a2a-sdk[http-server]==1.3.0" uvicorn
    .venv/bin/python3 agent.py [PORT]
"""

import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Task, TaskState, TaskStatus
from starlette.applications import Starlette

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 9100
WORDS = ["Python", " replies", ":", " ", "ha", "ha", "\n\n", "**bold**", " ✅ done", " 👩‍👩‍👧"]


class Echo(AgentExecutor):
    """Streams its answer, one status per token, and requests input when the text contains "ask"."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            task = Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        text = context.get_user_input()
        if "ask" in text and context.current_task is None:
            await updater.requires_input(updater.new_agent_message([Part(text="Which one?")]))
            return
        for word in [*WORDS, f" {text}"]:
            await updater.update_status(TaskState.TASK_STATE_WORKING, updater.new_agent_message([Part(text=word)]))
            await asyncio.sleep(0.05 if "slow" in text else 0.002)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="Python Agent",
    description="Echoes its input",
    version="1.0.0",
    supported_interfaces=[
        AgentInterface(url=f"http://127.0.0.1:{PORT}/", protocol_binding="JSONRPC", protocol_version="1.0")
    ],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="Echo", description="Echoes its input", tags=["echo"])],
)
handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=card)
app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning")
