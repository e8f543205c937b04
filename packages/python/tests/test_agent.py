import asyncio
import importlib.util
import tempfile
import unittest
from collections.abc import AsyncIterator
from pathlib import Path

if importlib.util.find_spec("a2a") is None:
    raise unittest.SkipTest("the agent kit needs a2a-sdk")

from a2a.server.agent_execution import RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueueLegacy
from a2a.types import Message, Part, Role, SendMessageRequest

from hopline.agent import (
    Agent,
    AgentEvent,
    RecordedToken,
    RecordingError,
    Turn,
    artifact,
    failed,
    needs_input,
    notice,
    play_turn,
    read_stream,
    recorded_agent,
    tool_end,
    tool_start,
    write_stream,
)
from hopline.agent.agent_executor import KitExecutor
from hopline.agent.tool_calls import CUT_KEY, TOOL_ARGUMENTS_BYTES_MAX, TOOL_RESULT_BYTES_MAX, TURN_TOOL_BYTES_MAX

from .agents.forecaster import forecaster
from .agents.greeter import greeter


class AgentTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_turn_has_the_answer_the_notices_and_the_artifacts(self) -> None:
        turn = await play_turn(greeter, "Ada 🎯")
        self.assertEqual((turn.text, turn.end, turn.failure), ("Hello, Ada 🎯!\n", "TASK_STATE_COMPLETED", None))
        self.assertEqual(turn.notices, ("Choosing a greeting",))
        (card,) = turn.artifacts
        self.assertEqual((card.name, card.parts[0]["text"]), ("card.md", "# For Ada 🎯\n"))
        chunks = [event["artifactUpdate"] for event in turn.events if "artifactUpdate" in event]
        answer = [chunk for chunk in chunks if chunk["artifact"]["name"] == "response"]
        self.assertEqual([chunk.get("append", False) for chunk in answer], [False, True, True, True, True])
        self.assertEqual([chunk.get("lastChunk", False) for chunk in answer], [False, False, False, False, True])

    async def test_an_answer_to_a_question_is_the_next_turn_of_its_task(self) -> None:
        asked = await play_turn(greeter, "who")
        self.assertEqual((asked.end, asked.question, asked.text), ("TASK_STATE_INPUT_REQUIRED", "Who should I greet?", ""))
        answered = await asked.answer("Ada")
        self.assertEqual((answered.text, answered.end), ("Hello, Ada!\n", "TASK_STATE_COMPLETED"))
        self.assertEqual(answered.view.task_id, asked.view.task_id)
        self.assertEqual(answered.view.turn, 2)

    async def test_an_agent_that_raises_fails_its_task_and_clients_do_not_see_the_error(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            yield "so far"
            raise RuntimeError(f"secret {turn.text}")

        with self.assertLogs("hopline.agent", "ERROR") as logged:
            turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        self.assertEqual((turn.text, turn.end, turn.failure), ("so far", "TASK_STATE_FAILED", "the agent failed"))
        self.assertNotIn("secret", str(turn.events))
        self.assertIn("secret hi", logged.output[0])

    async def test_an_agent_in_which_something_was_canceled_or_exits_fails_its_task(self) -> None:
        async def awaits_a_canceled_task(_turn: Turn) -> AsyncIterator[AgentEvent]:
            yield "so far"
            task = asyncio.create_task(asyncio.sleep(60))
            task.cancel()
            await task

        async def exits(_turn: Turn) -> AsyncIterator[AgentEvent]:
            yield "so far"
            raise SystemExit(1)

        # Python 3.10 does not show whose task was canceled.
        runs = [awaits_a_canceled_task, exits] if hasattr(asyncio.Task, "cancelling") else [exits]
        for run in runs:
            with self.subTest(run.__name__), self.assertLogs("hopline.agent", "ERROR") as logged:
                turn = await asyncio.wait_for(play_turn(Agent(name="a", description="b", run=run), "hi"), 10)
                self.assertEqual((turn.text, turn.end, turn.failure), ("so far", "TASK_STATE_FAILED", "the agent failed"))
                self.assertIn(run.__name__, logged.output[0])

    async def test_a_turn_whose_own_task_is_canceled_ends_as_canceled(self) -> None:
        has_begun = asyncio.Event()
        seen: list[str] = []

        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            has_begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen.append("canceled")
                raise
            yield "never"

        message = Message(message_id="m", role=Role.ROLE_USER, parts=[Part(text="hi")])
        request = SendMessageRequest(message=message)
        context = RequestContext(ServerCallContext(), request, task_id="t", context_id="c")
        queue = EventQueueLegacy()
        executing = asyncio.create_task(KitExecutor(Agent(name="a", description="b", run=run)).execute(context, queue))
        await has_begun.wait()
        executing.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await executing
        self.assertEqual(seen, ["canceled"])

    async def test_a_failure_has_the_reason_of_the_agent(self) -> None:
        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            yield failed("no such city")
            yield "never"

        turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        self.assertEqual((turn.text, turn.end, turn.failure), ("", "TASK_STATE_FAILED", "no such city"))

    async def test_what_is_not_an_event_fails_the_turn(self) -> None:
        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            yield 5  # type: ignore[misc]

        with self.assertLogs("hopline.agent", "ERROR") as logged:
            turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        self.assertEqual(turn.end, "TASK_STATE_FAILED")
        self.assertIn("not int", logged.output[0])

    def test_an_agent_that_cannot_run_is_refused_with_what_it_needs(self) -> None:
        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            yield "hi"

        async def answer(_turn: Turn) -> str:
            return "hi"

        for more, reason in (
            ({"run": answer}, "agent a: run must be an async generator: async def with yield"),
            ({"run": 5}, "agent a: run must be an async generator: async def with yield"),
            ({"run": run, "skills": "Greet"}, "agent a: skills is a str; it must be a list of names"),
        ):
            with self.assertRaises(TypeError) as raised:
                Agent(name="a", description="b", **more)
            self.assertEqual(str(raised.exception), reason)

    async def test_a_tool_that_is_not_async_is_named(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            yield await turn.tool("weather", {}, lambda: "clear")  # type: ignore[arg-type, return-value]

        with self.assertLogs("hopline.agent", "ERROR") as logged:
            turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        self.assertEqual(turn.tools[0].outcome, "failed")
        self.assertIn("tool weather: run returned str; it must be an async function", logged.output[0])

    async def test_an_artifact_has_bytes_and_data(self) -> None:
        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            yield artifact("a.bin", raw=b"\x00\x01", media_type="image/png")
            yield artifact("b", data={"n": 1})

        turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        one, two = turn.artifacts
        self.assertEqual(
            (one.parts[0]["raw"], one.parts[0]["mediaType"], two.parts[0]["data"]), ("AAE=", "image/png", {"n": 1.0})
        )
        with self.assertRaisesRegex(ValueError, "a.bin has no content"):
            artifact("a.bin")

    async def test_turns_run_side_by_side(self) -> None:
        turns = await asyncio.gather(*(play_turn(greeter, f"n{n}") for n in range(20)))
        self.assertEqual([turn.text for turn in turns], [f"Hello, n{n}!\n" for n in range(20)])

    def test_events_are_values(self) -> None:
        self.assertEqual((notice("a"), needs_input("b")), (notice("a"), needs_input("b")))


def playing(*events: AgentEvent) -> Agent:
    async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
        for event in events:
            yield event

    return Agent(name="a", description="b", run=run)


class ToolTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_turn_has_its_calls_with_arguments_and_results(self) -> None:
        turn = await play_turn(forecaster, "Oslo, Lima")
        self.assertEqual((turn.text, turn.end), ("Looking up: Oslo clear; Lima clear", "TASK_STATE_COMPLETED"))
        self.assertEqual(turn.artifacts, ())
        self.assertEqual(
            [(tool.tool, tool.outcome, tool.arguments, tool.result) for tool in turn.tools],
            [
                ("weather", "completed", {"city": "Oslo"}, {"sky": "clear", "degrees": 21, "city": "Oslo"}),
                ("weather", "completed", {"city": "Lima"}, {"sky": "clear", "degrees": 21, "city": "Lima"}),
                ("units", "completed", {"system": "metric"}, "°C"),
            ],
        )
        shown = [event["artifactUpdate"]["artifact"] for event in turn.events if "artifactUpdate" in event]
        names = [artifact["name"] for artifact in shown]
        # The two calls run side by side, between two pieces of the answer.
        self.assertEqual(sorted(names[1:5]), ["tool_notification_end"] * 2 + ["tool_notification_start"] * 2)
        self.assertEqual([names[0], *names[5:8]], ["response", "response", "tool_notification_start", "tool_notification_end"])

    async def test_a_failed_call_shows_the_message_of_a_tool_error_only(self) -> None:
        turn = await play_turn(forecaster, "Atlantis")
        self.assertEqual((turn.end, turn.failure), ("TASK_STATE_FAILED", "no such city"))
        (call,) = turn.tools
        self.assertEqual((call.outcome, call.result), ("failed", "no such city"))

        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            async def broken() -> None:
                raise RuntimeError("secret")

            with self.assertRaisesRegex(RuntimeError, "secret"):
                await turn.tool("db", {}, broken)
            yield "survived"

        turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        self.assertEqual((turn.text, turn.tools[0].outcome, turn.tools[0].result), ("survived", "failed", None))
        self.assertNotIn("secret", str(turn.events))

    async def test_an_open_call_ends_with_its_turn(self) -> None:
        start = tool_start("1", "search")
        ends = [playing(start), playing(start, failed("no")), playing(start, needs_input("which?"))]
        turns = [await play_turn(agent, "hi") for agent in ends]
        self.assertEqual([turn.tools[0].outcome for turn in turns], ["completed", "failed", "waiting"])

    async def test_a_wrong_call_fails_the_turn_and_is_named(self) -> None:
        start = tool_start("1", "search")
        for events, reason in (
            ((start, start), "the call 1 of tool search has begun already"),
            ((tool_end("1", "search"),), "the call 1 of tool search ends and has not begun"),
            ((start, tool_end("1", "find")), "the call 1 of tool find ends and has not begun"),
            ((tool_start("", "search"),), "call_id of a call must be a non-empty string, not ''"),
            ((tool_start("1", 5),), "tool of a call must be a non-empty string, not 5"),  # type: ignore[arg-type]
        ):
            with self.assertLogs("hopline.agent", "ERROR") as logged:
                turn = await play_turn(playing(*events), "hi")
            self.assertEqual(turn.end, "TASK_STATE_FAILED")
            self.assertIn(reason, logged.output[0])

    async def test_values_are_cut_above_their_bounds_and_left_out_without_a_form_in_json(self) -> None:
        async def call_of(arguments: object, result: object) -> tuple[object, object]:
            (call,) = (await play_turn(playing(tool_start("1", "t", arguments), tool_end("1", "t", result)), "hi")).tools
            return call.arguments, call.result

        whole = ("a" * (TOOL_ARGUMENTS_BYTES_MAX - 2), "b" * (TOOL_RESULT_BYTES_MAX - 2))
        self.assertEqual(await call_of(*whole), whole)
        arguments, result = await call_of(f"{whole[0]}a", f"{whole[1]}b")
        self.assertEqual(arguments, {CUT_KEY: TOOL_ARGUMENTS_BYTES_MAX + 1, "text": whole[0][: len(whole[0]) // 2]})
        self.assertEqual(result, {CUT_KEY: TOOL_RESULT_BYTES_MAX + 1, "text": whole[1][: len(whole[1]) // 2]})
        deep: object = "x"
        for _ in range(200):
            deep = [deep]
        arguments, result = await call_of(deep, ("tuple", {1: None}))
        self.assertEqual(arguments, {CUT_KEY: 403, "text": f'{"[" * 200}"x"{"]" * 200}'})
        self.assertEqual(result, ["tuple", {"1": None}])
        self.assertEqual(await call_of(object(), float("nan")), (None, None))
        self.assertEqual((await call_of("\ud800", None))[0], "?")

    async def test_a_turn_shows_values_up_to_its_bound(self) -> None:
        value = "a" * (TOOL_RESULT_BYTES_MAX - 2)
        whole = TURN_TOOL_BYTES_MAX // TOOL_RESULT_BYTES_MAX
        calls = [(tool_start(str(n), "t"), tool_end(str(n), "t", value)) for n in range(whole + 1)]
        turn = await play_turn(playing(*(event for call in calls for event in call)), "hi")
        results = [tool.result for tool in turn.tools]
        self.assertEqual(results[:whole], [value] * whole)
        self.assertEqual(results[whole], {CUT_KEY: TOOL_RESULT_BYTES_MAX, "text": ""})

    async def test_only_a_turn_that_runs_has_tools(self) -> None:
        seen: list[Turn] = []

        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            seen.append(turn)
            yield "a"

        await play_turn(Agent(name="a", description="b", run=run), "hi")
        (turn,) = seen
        with self.assertRaisesRegex(ValueError, "only a turn that is being run or played has tools"):
            await Turn(turn.task_id, turn.context_id, turn.message).tool("t", {}, lambda: asyncio.sleep(0))


class RecordedStreamTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "stream.jsonl"

    async def test_a_recorded_stream_is_played_token_by_token(self) -> None:
        words = ["Hel", "lo 🎯", "\n", ""]
        write_stream(self.path, words)
        self.assertEqual([token.text for token in read_stream(self.path)], words)
        turn = await play_turn(recorded_agent(self.path), "hi")
        self.assertEqual(turn.text, "Hello 🎯\n")

    async def test_a_paced_stream_keeps_its_order_and_text(self) -> None:
        write_stream(self.path, [RecordedToken("a", 0), RecordedToken("b", 2), RecordedToken("c", 2)])
        turn = await play_turn(recorded_agent(self.path, is_paced=True), "hi")
        self.assertEqual(turn.text, "abc")

    def test_lines_of_another_kind_are_skipped_and_wrong_ones_are_named(self) -> None:
        self.path.write_text('{"t":"think","k":"reasoning"}\n\n{"t":"a","k":"text","ms":1}\n', encoding="utf-8")
        self.assertEqual(read_stream(self.path), [RecordedToken("a", 1)])
        for content, reason in {
            "{": "line 1: not JSON",
            "[]": "line 1: not an object",
            '{"t":1}': 'line 1: "t" must be a string',
            '{"t":"a","k":1}': 'line 1: "k" must be a string',
            '{"t":"a","ms":-1}': 'line 1: "ms" must be a number',
            '{"t":"a","ms":true}': 'line 1: "ms" must be a number',
            '{"t":"a","ms":86400001}': 'line 1: "ms" must be a number',
            '{"t":"a","ms":2}\n{"t":"b","ms":1}': "line 2: ms goes back in time",
            "": "has no text",
        }.items():
            self.path.write_text(content, encoding="utf-8")
            with self.assertRaisesRegex(RecordingError, reason):
                read_stream(self.path)
        self.path.unlink()
        with self.assertRaisesRegex(RecordingError, "does not exist"):
            recorded_agent(self.path)
