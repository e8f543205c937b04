import asyncio
import importlib.util
import json
import os
import signal
import socket
import sys
import tempfile
import unittest
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

if importlib.util.find_spec("a2a") is None:
    raise unittest.SkipTest("the agent kit needs a2a-sdk")

import httpx
from a2a.auth.user import UnauthenticatedUser
from a2a.server.context import ServerCallContext
from a2a.types import Task, TaskState, TaskStatus

from hopline.agent import Agent, AgentEvent, Turn, agent_app, artifact, needs_approval, needs_input
from hopline.agent.recent_tasks import ENDED_SECONDS_MAX, ENDED_TASKS_MAX, WAITING_SECONDS_MAX, RecentTasks
from hopline.agent.stored_steps import STEPS_EXTENSION_URI
from hopline.client_view import Json

HEADERS = {"A2A-Version": "1.0"}


def body_of(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def message_of(text: str, **members: object) -> Json:
    return {"message": {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}], **members}}


@asynccontextmanager
async def client_of(agent: Agent) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(agent_app(agent, "http://agent.invalid/"))
    async with httpx.AsyncClient(transport=transport, base_url="http://agent.invalid", headers=HEADERS, timeout=60) as client:
        yield client


async def call(client: httpx.AsyncClient, method: str, params: Json) -> Json:
    answer: Json = (await client.post("/", json=body_of(method, params))).json()
    result: Json = answer["result"]
    return result


async def begin(client: httpx.AsyncClient, text: str) -> str:
    sent = await call(client, "SendMessage", {**message_of(text), "configuration": {"returnImmediately": True}})
    task_id: str = sent["task"]["id"]
    return task_id


class CancelTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_canceled_turn_ends_although_its_agent_catches_the_cancellation(self) -> None:
        has_begun = asyncio.Event()
        has_closed = asyncio.Event()
        seen: list[str] = []

        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            for n in range(3):
                try:
                    has_begun.set()
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    seen.append("caught")
                try:
                    yield f"{n} "
                finally:
                    has_closed.set()
            seen.append("never")

        async with client_of(Agent(name="a", description="b", run=run)) as client:
            task_id = await begin(client, "hi")
            await has_begun.wait()
            canceled = await call(client, "CancelTask", {"id": task_id})
            self.assertEqual(canceled["status"]["state"], "TASK_STATE_CANCELED")
            await asyncio.wait_for(has_closed.wait(), 30)
            self.assertEqual(seen, ["caught"])
            task = await call(client, "GetTask", {"id": task_id})
            self.assertEqual((task["status"]["state"], task.get("artifacts")), ("TASK_STATE_CANCELED", None))

    async def test_a_canceled_turn_begins_no_further_tool(self) -> None:
        has_begun = asyncio.Event()
        has_ended = asyncio.Event()
        ran: list[str] = []

        async def charge() -> None:
            ran.append("charge")

        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            try:
                has_begun.set()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass
            try:
                await turn.tool("charge", {}, charge)
            finally:
                has_ended.set()
            yield "never"

        async with client_of(Agent(name="a", description="b", run=run)) as client:
            task_id = await begin(client, "hi")
            await has_begun.wait()
            await call(client, "CancelTask", {"id": task_id})
            await asyncio.wait_for(has_ended.wait(), 30)
            self.assertEqual(ran, [])


class LateTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_task_that_outlives_its_turn_changes_nothing(self) -> None:
        go = asyncio.Event()
        later: list[asyncio.Task[object]] = []

        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            async def tool() -> object:
                await go.wait()
                return await turn.tool("late", {}, lambda: asyncio.sleep(0))

            async def step() -> object:
                await go.wait()
                return await turn.step("late", lambda _key: asyncio.sleep(0))

            later.extend([asyncio.create_task(tool()), asyncio.create_task(step())])
            yield needs_input("which?")

        async with client_of(Agent(name="a", description="b", run=run)) as client:
            client.headers["A2A-Extensions"] = STEPS_EXTENSION_URI
            sent = await call(client, "SendMessage", message_of("hi"))
            go.set()
            results = await asyncio.gather(*later, return_exceptions=True)
            self.assertEqual([str(one) for one in results], ["the turn has ended"] * 2)
            task = await call(client, "GetTask", {"id": sent["task"]["id"]})
            self.assertEqual((task["status"]["state"], task.get("artifacts")), ("TASK_STATE_INPUT_REQUIRED", None))

    async def test_a_step_that_waits_at_the_end_of_its_turn_is_canceled(self) -> None:
        later: list[asyncio.Task[object]] = []

        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            later.append(asyncio.create_task(turn.step("open", lambda _key: asyncio.sleep(0))))
            await asyncio.sleep(0.01)
            yield "done"

        async with client_of(Agent(name="a", description="b", run=run)) as client:
            client.headers["A2A-Extensions"] = STEPS_EXTENSION_URI
            await call(client, "SendMessage", message_of("hi"))
            with self.assertRaises(asyncio.CancelledError):
                await asyncio.wait_for(later[0], 30)


class QuestionTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_question_holds_no_asyncio_tasks_and_its_answer_may_name_only_its_task(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            yield "paid" if turn.approval is not None and turn.approval.approved else needs_approval("pay", {})

        with patch("hopline.agent.agent_server.QUESTION_SECONDS", 0.01):
            async with client_of(Agent(name="a", description="b", run=run)) as client:
                before = len(asyncio.all_tasks())
                asked = [await call(client, "SendMessage", message_of(str(n))) for n in range(3)]
                while len(asyncio.all_tasks()) > before:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                answer = message_of("yes", taskId=asked[0]["task"]["id"])
                done = (await call(client, "SendMessage", answer))["task"]
                self.assertEqual(
                    (done["status"]["state"], done["contextId"]), ("TASK_STATE_COMPLETED", asked[0]["task"]["contextId"])
                )


class RecentTasksTest(unittest.IsolatedAsyncioTestCase):
    async def test_old_tasks_are_forgotten_and_running_ones_are_kept(self) -> None:
        clock = [0.0]
        forgotten: list[str] = []
        store = RecentTasks(forgotten.append, lambda: clock[0])
        context = ServerCallContext(user=UnauthenticatedUser())

        async def save(task_id: str, state: TaskState) -> None:
            await store.save(Task(id=task_id, status=TaskStatus(state=state)), context)

        async def known(*ids: str) -> list[str]:
            return [task_id for task_id in ids if await store.get(task_id, context) is not None]

        await save("running", TaskState.TASK_STATE_WORKING)
        await save("asked", TaskState.TASK_STATE_INPUT_REQUIRED)
        await save("answered", TaskState.TASK_STATE_INPUT_REQUIRED)
        await save("ended", TaskState.TASK_STATE_COMPLETED)
        clock[0] = ENDED_SECONDS_MAX - 1
        await save("answered", TaskState.TASK_STATE_WORKING)
        names = ("running", "asked", "answered", "ended")
        self.assertEqual((await known(*names), forgotten), ([*names], []))
        clock[0] = ENDED_SECONDS_MAX
        await save("running", TaskState.TASK_STATE_WORKING)
        self.assertEqual((await known(*names), forgotten), ([*names[:3]], ["ended"]))
        clock[0] = WAITING_SECONDS_MAX
        await save("other", TaskState.TASK_STATE_WORKING)
        self.assertEqual((await known(*names), forgotten), (["running", "answered"], ["ended", "asked"]))

    async def test_a_turn_that_ended_has_its_text_in_one_part(self) -> None:
        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            for word in ("Hel", "lo ", "🎯"):
                yield word
            yield artifact("a.md", text="# A")

        async with client_of(Agent(name="a", description="b", run=run)) as client:
            task_id = (await call(client, "SendMessage", message_of("hi")))["task"]["id"]
            artifacts = (await call(client, "GetTask", {"id": task_id}))["artifacts"]
            self.assertEqual([one["parts"] for one in artifacts], [[{"text": "Hello 🎯"}], [{"text": "# A", "filename": "a.md"}]])

    async def test_the_number_of_ended_tasks_is_bounded(self) -> None:
        forgotten: list[str] = []
        store = RecentTasks(forgotten.append)
        context = ServerCallContext(user=UnauthenticatedUser())
        for n in range(ENDED_TASKS_MAX + 1):
            await store.save(Task(id=str(n), status=TaskStatus(state=TaskState.TASK_STATE_FAILED)), context)
        self.assertEqual(forgotten, ["0"])


@unittest.skipIf(importlib.util.find_spec("uvicorn") is None, "a server of real connections needs uvicorn")
class ServedTest(unittest.IsolatedAsyncioTestCase):
    async def test_an_agent_waits_for_a_reader_that_is_slower(self) -> None:
        import uvicorn

        has_ended = asyncio.Event()
        chunk, count = "x" * 64 * 1024, 200

        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            for _ in range(count):
                yield chunk
            has_ended.set()

        with socket.create_server(("127.0.0.1", 0)) as listener:
            app = agent_app(Agent(name="a", description="b", run=run), "http://agent.invalid/")
            server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            connection = socket.create_connection(listener.getsockname())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
            reader, writer = await asyncio.open_connection(sock=connection, limit=2**20)
            body = json.dumps(body_of("SendStreamingMessage", message_of("hi"))).encode()
            head = f"POST / HTTP/1.1\r\nhost: a\r\na2a-version: 1.0\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await reader.readuntil(b"TASK_STATE_WORKING")
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(has_ended.wait(), 1)
            rest = await reader.read(-1)
            self.assertEqual((rest.count(chunk.encode()), rest.count(b"TASK_STATE_COMPLETED")), (count, 1))
            writer.close()
            server.should_exit = True
            await serving

    async def test_a_stopped_server_ends_its_turns_first(self) -> None:
        state, notes = await self.stopped("10", drain="20")
        self.assertEqual((state, notes), ("TASK_STATE_COMPLETED", ["arrived", "cleaned up"]))

    async def test_a_turn_longer_than_the_drain_is_canceled_and_cleans_up(self) -> None:
        state, notes = await self.stopped("600", drain="0.2")
        self.assertEqual((state, notes), ("TASK_STATE_WORKING", ["cleaned up"]))

    async def stopped(self, steps: str, *, drain: str) -> tuple[str, list[str]]:
        """The last state in the stream of a turn during which the server gets SIGTERM, and what the agent has noted."""
        with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
            file = Path(folder, "notes")
            env = {**os.environ, "WALKER_FILE": str(file), "WALKER_DRAIN": drain}
            command = ["-m", "uvicorn", "tests.agents.walker:app", "--fd", str(listener.fileno()), "--log-level", "critical"]
            server = await asyncio.create_subprocess_exec(sys.executable, *command, env=env, pass_fds=[listener.fileno()])
            port = listener.getsockname()[1]
            listener.close()
            state = ""
            try:
                async with httpx.AsyncClient(headers=HEADERS, timeout=60) as client:
                    body = body_of("SendStreamingMessage", message_of(steps))
                    async with client.stream("POST", f"http://127.0.0.1:{port}/", json=body) as response:
                        try:
                            async for line in response.aiter_lines():
                                result = json.loads(line.removeprefix("data: "))["result"] if line.startswith("data: ") else {}
                                state = result.get("statusUpdate", {}).get("status", {}).get("state", state)
                                if "artifactUpdate" in result and not result["artifactUpdate"].get("append"):
                                    server.send_signal(signal.SIGTERM)
                        except httpx.RemoteProtocolError:
                            # The stream was cut off.
                            pass
                await asyncio.wait_for(server.wait(), 60)
            finally:
                if server.returncode is None:
                    server.kill()
                    await server.wait()
            return state, file.read_text().splitlines()  # noqa: ASYNC240
