import asyncio
import importlib.util
import json
import pickle
import tempfile
import unittest
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

if importlib.util.find_spec("a2a") is None:
    raise unittest.SkipTest("the agent kit needs a2a-sdk")

import anyio
from a2a.server.agent_execution import RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueueLegacy
from a2a.types import Message, Part, Role, SendMessageRequest

from hopline import approval_response
from hopline.agent import (
    Agent,
    AgentEvent,
    Approval,
    PlayedTurn,
    RecordedToken,
    RecordingError,
    StepError,
    StepFailed,
    Turn,
    agent_app,
    artifact,
    failed,
    needs_approval,
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
from hopline.agent.stored_steps import ANSWER_STEP, STEP_OUTCOME_BYTES_MAX, STEPS_EXTENSION_URI
from hopline.agent.tool_calls import CUT_KEY, TOOL_ARGUMENTS_BYTES_MAX, TOOL_RESULT_BYTES_MAX, TURN_TOOL_BYTES_MAX
from hopline.client_view import Json

from .agents.clerk import clerk
from .agents.forecaster import forecaster
from .agents.greeter import greeter
from .agents.refunder import refunder


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

    async def test_an_agent_asks_for_an_approval_and_the_next_turn_has_the_decision_and_the_arguments(self) -> None:
        async def asked() -> tuple[PlayedTurn, Json]:
            turn = await play_turn(refunder, "17")
            self.assertEqual(turn.end, "TASK_STATE_INPUT_REQUIRED")
            self.assertEqual(turn.question, 'Run refund with {"order":"17","cents":950}?')
            assert turn.view.question is not None
            request = turn.view.question.approval
            assert request is not None
            self.assertEqual(
                {**request, "callId": ""}, {"callId": "", "tool": "refund", "arguments": {"order": "17", "cents": 950}}
            )
            return turn, request

        turn, request = await asked()
        approve = approval_response(request, True)
        forged = {"data": {"arguments": {"order": "18"}, "approvalRequest": {**request, "arguments": {}}}}
        done = await turn.answer([*approve, forged])
        self.assertEqual((done.text, done.end), ("Refunded 950 of 17 (from 17).", "TASK_STATE_COMPLETED"))
        (call,) = done.tools
        self.assertEqual((call.id, call.tool, call.arguments), (request["callId"], "refund", {"order": "17", "cents": 950}))
        answers: list[tuple[str | list[Json], str]] = [
            ("Yes.", "Refunded 950 of 17 (from 17)."),
            ("no, too late", "Not refunded: no, too late"),
            (approval_response({"callId": "c-0"}, True), "Not refunded: The response names a different call; "),
            (approval_response(request, True), "Not refunded: The response names a different call; "),
        ]
        for answer, text in answers:
            with self.subTest(answer=answer):
                turn, _ = await asked()
                answered = await turn.answer(answer)
                self.assertEqual(answered.text[: len(text)], text)
        turn, request = await asked()
        self.assertEqual((await turn.answer(approval_response(request, False, "too late"))).text, "Not refunded: too late")

    async def test_an_answer_approves_only_the_question_before_it(self) -> None:
        seen: list[tuple[Approval | None, object]] = []

        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            seen.append((turn.approval, turn.resume))
            yield needs_approval("pay", {}) if turn.text == "pay" else needs_input("Which one?")

        agent = Agent(name="a", description="b", run=run)
        turn = await play_turn(agent, "pay")
        assert turn.view.question is not None and turn.view.question.approval is not None
        yes = approval_response(turn.view.question.approval, True)
        asked = await (await turn.answer(yes)).answer(yes)
        self.assertEqual(asked.question, "Which one?")
        self.assertEqual([approval and approval.approved for approval, _ in seen], [None, True, None])

    def test_a_request_for_an_approval_names_a_wrong_member(self) -> None:
        deep: Json = {}
        for _ in range(24):
            deep = {"a": deep}
        wrong: list[tuple[dict[str, object], str]] = [
            ({"tool": "", "arguments": {}}, "tool must be a non-empty string"),
            ({"tool": "a", "arguments": []}, "arguments must be a mapping, not list"),
            ({"tool": "a", "arguments": {"n": object()}}, "arguments cannot be written as JSON"),
            ({"tool": "a", "arguments": {"n": 2**53 + 1}}, "9007199254740993 is above 2^53; make it a string"),
            ({"tool": "a", "arguments": {"n": "\ud800"}}, "arguments cannot be written as JSON"),
            ({"tool": "a", "arguments": deep}, "arguments has more than 24 levels of JSON"),
            ({"tool": "a", "arguments": {}, "question": ""}, "question must be a non-empty string"),
            ({"tool": "a", "arguments": {}, "resume": object()}, "resume cannot be written as JSON"),
        ]
        for members, reason in wrong:
            with self.subTest(reason=reason), self.assertRaises((TypeError, ValueError)) as raised:
                needs_approval(**members)  # type: ignore[arg-type]
            self.assertIn(reason, str(raised.exception))

    async def test_arguments_of_the_deepest_form_reach_the_client(self) -> None:
        deep: Json = {}
        for _ in range(23):
            deep = {"a": deep}

        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            yield needs_approval("a", deep, "Run it?")

        turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        assert turn.view.question is not None and turn.view.question.approval is not None
        self.assertEqual((turn.question, turn.view.question.approval["arguments"]), ("Run it?", deep))

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

    async def test_any_error_of_an_agent_fails_its_task(self) -> None:
        class Outcome(BaseException):
            """As those of pytest."""

        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            yield "so far"
            raise Outcome

        with self.assertLogs("hopline.agent", "ERROR"):
            turn = await asyncio.wait_for(play_turn(Agent(name="a", description="b", run=run), "hi"), 10)
        self.assertEqual((turn.text, turn.end, turn.failure), ("so far", "TASK_STATE_FAILED", "the agent failed"))

    async def test_an_agent_cleans_up_before_its_turn_ends_in_the_task_in_which_it_ran(self) -> None:
        seen: list[object] = []

        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            seen.append(asyncio.current_task())
            try:
                yield needs_input("which?") if turn.text == "ask" else 5  # type: ignore[misc]
            finally:
                await turn.tool("clean up", {}, lambda: asyncio.sleep(0))
                seen.append(asyncio.current_task())

        agent = Agent(name="a", description="b", run=run)
        turn = await play_turn(agent, "ask")
        self.assertEqual((turn.end, [tool.tool for tool in turn.tools]), ("TASK_STATE_INPUT_REQUIRED", ["clean up"]))
        with self.assertLogs("hopline.agent", "ERROR"):
            self.assertEqual((await play_turn(agent, "fail")).tools[0].outcome, "completed")
        first, last, *other = seen
        self.assertIs(first, last)
        self.assertIs(other[0], other[1])

    async def test_a_question_leaves_the_task_group_around_it(self) -> None:
        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            async with anyio.create_task_group() as group, anyio.create_task_group():
                group.start_soon(anyio.sleep, 60)
                yield needs_input("which?")

        turn = await asyncio.wait_for(play_turn(Agent(name="a", description="b", run=run), "hi"), 10)
        self.assertEqual((turn.end, turn.question), ("TASK_STATE_INPUT_REQUIRED", "which?"))

    async def test_an_error_of_the_clean_up_fails_the_turn(self) -> None:
        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            try:
                yield needs_input("which?")
            finally:
                raise RuntimeError("lost")

        with self.assertLogs("hopline.agent", "ERROR") as logged:
            turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        self.assertEqual(turn.failure, "the agent failed")
        self.assertIn("lost", logged.output[0])

    async def test_surrogates_are_joined_and_a_lone_one_is_replaced(self) -> None:
        async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
            yield "a\ud83c"
            yield notice("b\udcff")
            yield tool_start("1\udcff", "find\udcff")
            yield artifact("c\udcff.md", text="d\udcff")
            yield "\udfaf e\ud83c"
            yield failed("no file f\udcff")

        turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        self.assertEqual((turn.text, turn.notices, turn.failure), ("a🎯 e\ufffd", ("b\ufffd",), "no file f\ufffd"))
        self.assertEqual((turn.tools[0].tool, turn.tools[0].outcome), ("find\ufffd", "failed"))
        self.assertEqual((turn.artifacts[0].name, turn.artifacts[0].parts[0]["text"]), ("c\ufffd.md", "d\ufffd"))

    async def test_an_event_that_is_not_made_of_text_is_named(self) -> None:
        for make, name in ((failed, "failed"), (notice, "notice"), (needs_input, "needs_input")):

            async def run(_turn: Turn, make=make) -> AsyncIterator[AgentEvent]:  # type: ignore[no-untyped-def]
                yield make(ValueError("secret"))

            with self.assertLogs("hopline.agent", "ERROR") as logged:
                turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
            self.assertEqual((turn.end, turn.failure), ("TASK_STATE_FAILED", "the agent failed"))
            self.assertIn(f"{name} takes a string, not ValueError", logged.output[0])

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

        def sync(_turn: Turn) -> Iterator[AgentEvent]:
            yield "hi"

        for more, reason in (
            ({"run": sync}, "agent a: run must be an async generator: async def with yield"),
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
            yield artifact("c.mp4", url="https://files.example/c.mp4", media_type="video/mp4")

        turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        one, two, three = turn.artifacts
        self.assertEqual(
            (one.parts[0]["raw"], one.parts[0]["mediaType"], two.parts[0]["data"]), ("AAE=", "image/png", {"n": 1.0})
        )
        self.assertEqual((three.parts[0]["url"], three.parts[0]["mediaType"]), ("https://files.example/c.mp4", "video/mp4"))
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

    async def test_a_call_that_was_canceled_has_failed(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            try:
                await asyncio.wait_for(turn.tool("search", {}, lambda: asyncio.sleep(60)), 0.01)
            except asyncio.TimeoutError:
                yield "too slow"

        turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        self.assertEqual((turn.text, turn.tools[0].outcome), ("too slow", "failed"))

    async def test_an_open_call_ends_with_its_turn(self) -> None:
        start = tool_start("1", "search")
        ends = [playing(start), playing(start, failed("no")), playing(start, needs_input("which?"))]
        turns = [await play_turn(agent, "hi") for agent in ends]
        self.assertEqual([turn.tools[0].outcome for turn in turns], ["completed", "failed", "waiting"])

    async def test_a_wrong_call_fails_the_turn_and_is_named(self) -> None:
        start = tool_start("1", "search")
        for events, reason in (
            ((start, start), "call 1 of tool search has already begun"),
            ((tool_end("1", "search"),), "call 1 of tool search ended without beginning"),
            ((start, tool_end("1", "find")), "call 1 of tool find ended without beginning"),
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


async def _one(_key: str) -> int:
    return 1


class StepTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.file = Path(self._folder.name, "effects")

    def effects(self) -> list[str]:
        return [line.split(" ")[0] for line in self.file.read_text().splitlines()]

    async def test_the_next_attempt_gets_the_stored_steps_and_runs_the_rest(self) -> None:
        first = await play_turn(clerk, f"nowhere {self.file}")
        self.assertEqual((first.text, self.effects()), ("Charging. Charged 1. sent 1", ["charge", "send"]))
        self.assertEqual(
            [(step.name, step.result, step.is_reused) for step in first.steps],
            [("charge", {"times": 1}, False), ("send", "sent 1", False)],
        )
        again = await play_turn(clerk, f"nowhere {self.file}", steps=first.steps[:1])
        self.assertEqual((again.text, self.effects()), ("Charging. Charged 1. sent 2", ["charge", "send", "send"]))
        self.assertEqual([step.is_reused for step in again.steps], [True, False])

    async def test_the_steps_that_failed_last_run_again_if_the_turn_is_repeated(self) -> None:
        failing = await play_turn(clerk, f"away {self.file}")
        self.assertEqual((failing.end, failing.failure), ("TASK_STATE_FAILED", "ConnectionError: the server is away"))
        self.assertEqual([step.name for step in failing.steps], ["charge"])
        again = await play_turn(clerk, f"away {self.file}", steps=failing.steps)
        self.assertEqual((again.text, self.effects()), ("Charging. Charged 1. sent 2", ["charge", "send", "send"]))

    async def test_every_attempt_gets_an_error_in_the_same_form(self) -> None:
        async def fail(_key: str) -> None:
            raise ValueError("no: such city")

        caught: list[StepFailed] = []

        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            try:
                await turn.step("find", fail)
            except StepFailed as error:
                caught.append(error)
                yield f"{error.name}|{error.message}"

        agent = Agent(name="a", description="b", run=run)
        first = await play_turn(agent, "hi")
        again = await play_turn(agent, "hi", steps=first.steps)
        self.assertEqual((first.text, again.text), ("ValueError|no: such city", "ValueError|no: such city"))
        self.assertEqual([type(error.__cause__) for error in caught], [ValueError, type(None)])

    async def test_a_result_is_that_of_its_json(self) -> None:
        results: list[object] = []

        async def value(_key: str) -> object:
            return {"a": (1.0, 0.5, 1e300), 2: None, "text": "🎯\r\n"}

        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            results.append(await turn.step("find", value))
            yield json.dumps(results[-1])

        agent = Agent(name="a", description="b", run=run)
        first = await play_turn(agent, "hi")
        again = await play_turn(agent, "hi", steps=first.steps)
        self.assertEqual(first.text, again.text)
        self.assertEqual(results[0], {"a": [1, 0.5, 1e300], "2": None, "text": "🎯\r\n"})
        self.assertTrue(first.text.startswith('{"a": [1, 0.5'))

    async def test_what_cannot_be_stored_fails_the_turn_and_is_named(self) -> None:
        async def nested(turn: Turn) -> int:
            return await turn.step("inner", _one)

        async def large(_key: str) -> object:
            return "x" * STEP_OUTCOME_BYTES_MAX

        async def of(value: object) -> object:
            return value

        for reason, call in (
            ("its name must be", lambda turn: turn.step("", _one)),
            ("cannot be written as JSON", lambda turn: turn.step("s", lambda _key: of({1, 2}))),
            ("cannot be written as JSON", lambda turn: turn.step("s", lambda _key: of(float("nan")))),
            ("above 2\\^53", lambda turn: turn.step("s", lambda _key: of(2**53 + 1))),
            ("bytes of JSON, more than", lambda turn: turn.step("s", large)),
            ("step inner begins inside step s", lambda turn: turn.step("s", lambda _key: nested(turn))),
        ):

            async def run(turn: Turn, call=call) -> AsyncIterator[AgentEvent]:  # type: ignore[no-untyped-def]
                yield str(await call(turn))

            with self.subTest(reason), self.assertLogs("hopline.agent", "ERROR") as logged:
                turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
                self.assertEqual((turn.end, turn.steps), ("TASK_STATE_FAILED", ()))
            self.assertRegex(logged.output[0], reason)

    async def test_a_step_after_one_that_was_canceled_fails_the_turn_and_the_limit_is_named(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            try:
                await asyncio.wait_for(turn.step("slow", lambda _key: asyncio.sleep(60)), 0.01)
            except asyncio.TimeoutError:
                yield str(await turn.step("next", _one))

        with self.assertLogs("hopline.agent", "ERROR") as logged:
            turn = await play_turn(Agent(name="a", description="b", run=run), "hi")
        self.assertEqual(turn.end, "TASK_STATE_FAILED")
        self.assertIn("step next begins inside step slow, or after that was canceled", logged.output[0])

    def test_a_failed_step_can_be_pickled(self) -> None:
        error = pickle.loads(pickle.dumps(StepFailed("ValueError", "no")))
        self.assertEqual((type(error), str(error), error.name, error.message), (StepFailed, "no", "ValueError", "no"))

    async def test_another_order_of_steps_fails_the_turn(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            yield str(await turn.step(turn.text, _one))

        agent = Agent(name="a", description="b", run=run)
        first = await play_turn(agent, "charge")
        with self.assertLogs("hopline.agent", "ERROR") as logged:
            again = await play_turn(agent, "send", steps=first.steps)
        self.assertEqual(again.end, "TASK_STATE_FAILED")
        self.assertIn("step send runs where an earlier attempt stored step charge", logged.output[0])

    async def test_a_served_turn_waits_for_the_answers_of_its_client(self) -> None:
        import httpx

        app = agent_app(clerk, "http://agent.invalid/")
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://agent.invalid") as client:

            async def call(method: str, params: object, *, steps: bool = True) -> Json:
                headers = {"A2A-Version": "1.0", **({"A2A-Extensions": STEPS_EXTENSION_URI} if steps else {})}
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                answer: Json = (await client.post("/", headers=headers, json=body)).json()
                return answer

            card = (await client.get("/.well-known/agent-card.json")).json()
            self.assertEqual([one["uri"] for one in card["capabilities"]["extensions"]], [STEPS_EXTENSION_URI])

            def message(text: str, **more: object) -> Json:
                return {"message": {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}, **more}

            sent = await call("SendMessage", message(f"nowhere {self.file}", configuration={"returnImmediately": True}))
            task_id = sent["result"]["task"]["id"]
            asked: list[Json] = []
            answers: list[Json] = [{"key": "k-1"}, {}, {"key": "k-2", "outcome": {"value": "sent before"}}]
            for answer in answers:
                while True:
                    task = (await call("GetTask", {"id": task_id}))["result"]
                    request = task.get("metadata", {}).get(STEPS_EXTENSION_URI)
                    if request is not None and request not in asked:
                        break
                    await asyncio.sleep(0.01)
                asked.append(request)
                wrong = await call(ANSWER_STEP, {"taskId": "other", "id": request["id"], **answer})
                self.assertEqual(wrong["error"]["code"], -32001)
                for _twice in range(2):
                    right = await call(ANSWER_STEP, {"taskId": task_id, "id": request["id"], **answer})
                    if _twice == 0:
                        self.assertEqual(right["result"], {})
            self.assertEqual(
                [(one["steps"], one.get("outcome")) for one in asked],
                [(["charge"], None), (["charge"], '{"value": {"times": 1}}'), (["charge", "send"], None)],
            )
            while task["status"]["state"] == "TASK_STATE_WORKING":
                await asyncio.sleep(0.01)
                task = (await call("GetTask", {"id": task_id}))["result"]
            self.assertEqual("".join(part["text"] for part in task["artifacts"][0]["parts"]), "Charging. Charged 1. sent before")
            self.assertEqual(self.file.read_text(), "charge k-1\n")
            self.assertEqual(task["metadata"], {STEPS_EXTENSION_URI: None})
            self.assertEqual((await call("Unknown", {}))["error"]["code"], -32601)
            # A client without the extension would lose the results.
            with self.assertLogs("hopline.agent", "ERROR") as logged:
                without = await call("SendMessage", message(f"nowhere {self.file}2"), steps=False)
            self.assertEqual(without["result"]["task"]["status"]["state"], "TASK_STATE_FAILED")
            self.assertIn("stores no steps", logged.output[0])

    async def test_only_a_turn_that_runs_has_steps(self) -> None:
        played: list[Turn] = []

        async def run(turn: Turn) -> AsyncIterator[AgentEvent]:
            played.append(turn)
            yield "x"

        await play_turn(Agent(name="a", description="b", run=run), "hi")
        with self.assertRaisesRegex(StepError, "stores no steps"):
            await Turn("t", "c", played[0].message).step("s", _one)


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
