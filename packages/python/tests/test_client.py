import asyncio
import pickle
import time
import unittest
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate
from typing import Any

import httpx

from hopline import (
    BEGINNING,
    A2AError,
    Client,
    ClientLimits,
    ClientView,
    NoAnswerError,
    QuestionAsked,
    RetryLimits,
    StreamEvent,
    StreamGap,
    Webhook,
    approval_response,
)

from .broken_server import BrokenServer, Request, Response, chunk, error, frame, result, status, stream, task

RETRY = RetryLimits(tries_max=4, unreached_tries_max=2, base_seconds=0.001, wait_seconds_max=0.002)
STORY = [task(), chunk("a ", append=False), chunk("b "), chunk("🎯"), status("COMPLETED")]


def frames(first: int, last: int) -> list[bytes]:
    return [frame(STORY[generation - 1], generation) for generation in range(first, last + 1)]


def always(response: Response) -> Callable[[int, Request], Response]:
    return lambda _n, _request: response


def in_turn(*responses: Response) -> Callable[[int, Request], Response]:
    return lambda n, _request: responses[min(n, len(responses) - 1)]


def client_of(server: BrokenServer, **options: Any) -> Client:
    return Client(server.url, **{"retry": RETRY, **options})


class ClientTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        # httpx reads the certificates of the system for each client, which takes a tenth of a second.
        asyncio.get_running_loop().slow_callback_duration = 60

    async def test_an_answer_that_is_cut_in_mid_frame_resumes_after_its_cursor(self) -> None:
        half = frame(STORY[2], 3)
        responses = in_turn(
            stream(*frames(1, 2), half[:-9], is_cut=True), Response(status=503), stream(*frames(3, 3)), stream(*frames(2, 5))
        )
        async with BrokenServer(responses) as server, client_of(server, headers={"authorization": "Bearer x"}) as client:
            seen: list[str] = []
            answer = await client.ask("count", agent="counter", on_view=lambda view: seen.append(view.answer))
            self.assertEqual((answer.text, answer.state, answer.task_id), ("a b 🎯", "TASK_STATE_COMPLETED", "task-1"))
            self.assertEqual(seen, ["", "a ", "a b ", "a b 🎯", "a b 🎯"])
            first, *others = server.requests
            self.assertEqual((first.method, first.params["metadata"]), ("SendStreamingMessage", {"agent": "counter"}))
            self.assertEqual([one.method for one in others], ["SubscribeToTask"] * 3)
            self.assertEqual([one.headers.get("last-event-id") for one in others], ["2.102", "2.102", "3.103"])
            self.assertEqual({one.headers["authorization"] for one in server.requests}, {"Bearer x"})
            self.assertEqual({one.headers["a2a-version"] for one in server.requests}, {"1.0"})

    async def test_a_message_without_a_response_is_sent_again_unchanged(self) -> None:
        async with BrokenServer(in_turn(stream(is_cut=True), stream(*frames(1, 5)))) as server, client_of(server) as client:
            await client.ask("count", context="c")
            one, other = server.requests
            self.assertEqual(one.params, other.params)
            self.assertEqual(one.params["message"]["contextId"], "c")

    async def test_the_date_of_retry_after_is_one_of_the_clock_of_the_server(self) -> None:
        ahead = formatdate(time.time() + 3_600, usegmt=True)
        busy = Response(status=503, headers=(f"date: {ahead}", f"retry-after: {ahead}"))
        async with BrokenServer(in_turn(busy, stream(*frames(1, 5)))) as server, client_of(server) as client:
            self.assertEqual((await client.ask("count")).text, "a b 🎯")
            self.assertEqual(len(server.requests), 2)

    async def test_a_date_that_is_out_of_range_is_no_delay(self) -> None:
        busy = Response(status=503, headers=("retry-after: 99999999999999999999 Feb 30 07:28:00 -",))
        async with BrokenServer(in_turn(busy, stream(*frames(1, 5)))) as server, client_of(server) as client:
            self.assertEqual((await client.ask("count")).text, "a b 🎯")

    async def test_an_async_function_receives_the_views(self) -> None:
        seen: list[str] = []

        async def show(view: ClientView) -> None:
            await asyncio.sleep(0)
            seen.append(view.answer)

        async with BrokenServer(always(stream(*frames(1, 5)))) as server, client_of(server) as client:
            await client.ask("count", on_view=show)
        self.assertEqual(seen[-1], "a b 🎯")

    async def test_a_header_that_http_does_not_allow_is_named_without_its_value(self) -> None:
        for headers in ({"authorization": "Bearer secret\n"}, {"authorization": " secret"}, {"authorization": "sécret"}):
            with self.assertRaisesRegex(ValueError, "header 'authorization'") as caught:
                Client("http://127.0.0.1:9/", headers=headers)
            self.assertNotIn("cret", str(caught.exception))
        for wrong in ({"a b": "c"}, {"a": None}, {"": "c"}):
            with self.assertRaises(ValueError):
                Client("http://127.0.0.1:9/", headers=wrong)  # type: ignore[arg-type]
        async with Client("http://127.0.0.1:9/", headers={"x-empty": "", "authorization": "Bearer a.b-c_d==\t~"}):
            pass

    async def test_an_error_can_be_pickled(self) -> None:
        not_found = pickle.loads(pickle.dumps(A2AError("TASK_NOT_FOUND", "t", task_id="t")))
        self.assertEqual((str(not_found), not_found.code, not_found.task_id), ("Task not found: t", "TASK_NOT_FOUND", "t"))
        failing = [frame(task(), 1), frame(status("FAILED", "no such city"), 2)]
        async with BrokenServer(always(stream(*failing))) as server, client_of(server) as client:
            with self.assertRaises(NoAnswerError) as caught:
                await client.ask("count")
        failed = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(failed), failed.view.to_json()), (str(caught.exception), caught.exception.view.to_json()))

    async def test_any_id_of_an_event_is_sent_back(self) -> None:
        for event_id in ("é🎯", " 1.2 "):
            first = frame(task(), None).replace(b"data:", f"id: {event_id}\ndata:".encode())
            async with (
                BrokenServer(in_turn(stream(first, is_cut=True), stream(*frames(1, 5)))) as server,
                client_of(server) as client,
            ):
                await client.ask("count")
                self.assertEqual(server.requests[1].headers["last-event-id"], event_id.strip())

    async def test_a_gap_is_followed_by_the_task_and_the_view_is_whole(self) -> None:
        artifact = {"artifactId": "a", "name": "streaming_result", "parts": [{"text": "a b 🎯"}]}
        gap = frame({"missing": {"from": 3, "to": 4}}, None, "gap")
        responses = in_turn(
            stream(*frames(1, 2), is_cut=True),
            stream(gap, is_cut=True),
            stream(gap, frame(task("WORKING", artifacts=[artifact]), 4), *frames(5, 5)),
        )
        async with BrokenServer(responses) as server, client_of(server) as client:
            views = [view async for view in client.watch("task-1")]
            self.assertEqual((views[-1].answer, views[-1].gaps), ("a b 🎯", 1))
        async with BrokenServer(responses) as server, client_of(server) as client:
            items = [item async for item in client.events("task-1", cursor=BEGINNING)]
            self.assertEqual([item for item in items if isinstance(item, StreamGap)], [StreamGap((3, 4))])
            self.assertEqual(
                [item.cursor for item in items if isinstance(item, StreamEvent)], ["1.101", "2.102", "4.104", "5.105"]
            )

    async def test_a_question_is_an_error_that_can_be_answered(self) -> None:
        asked = [frame(task("WORKING"), 1), frame(status("INPUT_REQUIRED", "Which one?"), 2)]
        done = [frame(task("WORKING"), 3), *frames(4, 5)]
        async with BrokenServer(in_turn(stream(*asked), stream(*done))) as server, client_of(server) as client:
            with self.assertRaises(QuestionAsked) as caught:
                await client.ask("count")
            view = caught.exception.view
            assert view.question is not None
            assert view.task_id is not None
            self.assertEqual(
                (view.question.text, str(caught.exception)), ("Which one?", "the task is input-required: Which one?")
            )
            answer = await client.answer(view.task_id, "this one")
            self.assertEqual((answer.text, answer.view.turn), ("🎯", 2))
            sent = server.requests[1].params["message"]
            self.assertEqual((sent["taskId"], "contextId" in sent), ("task-1", False))

    async def test_an_answer_has_the_parts_of_an_approval(self) -> None:
        events = [frame(event, generation) for generation, event in enumerate([task(), status("COMPLETED")], 4)]
        async with BrokenServer(always(stream(*events))) as server, client_of(server) as client:
            parts = approval_response({"callId": "c-1"}, False, "too late")
            await client.answer("task-1", parts)
            message = server.requests[0].params["message"]
            self.assertEqual((message["taskId"], message["parts"]), ("task-1", parts))

    async def test_a_failure_is_an_error_with_its_reason(self) -> None:
        failed = [frame(task(), 1), frame(status("FAILED", "no such city"), 2)]
        async with BrokenServer(always(stream(*failed))) as server, client_of(server) as client:
            with self.assertRaises(NoAnswerError) as caught:
                await client.ask("count")
            self.assertNotIsInstance(caught.exception, QuestionAsked)
            self.assertEqual(caught.exception.view.failure, "no such city")

    async def test_errors_have_the_codes_of_a2a(self) -> None:
        not_found = error(-32001, reason="TASK_NOT_FOUND", metadata={"retryable": "false", "taskId": "t"})
        async with BrokenServer(always(not_found)) as server, client_of(server) as client:
            with self.assertRaises(A2AError) as caught:
                await client.get("t")
            found = caught.exception
            self.assertEqual((found.code, found.rpc, found.task_id), ("TASK_NOT_FOUND", -32001, "t"))
            self.assertEqual((str(found), len(server.requests)), ("Task not found: t", 1))
            with self.assertRaises(A2AError):
                [item async for item in client.events("t")]
        quota = error(-32603, reason="QUOTA_EXCEEDED", metadata={"retryable": "true"})
        async with BrokenServer(always(quota)) as server, client_of(server) as client:
            with self.assertRaises(A2AError) as caught:
                await client.list()
            self.assertEqual((caught.exception.code, len(server.requests)), ("QUOTA_EXCEEDED", RETRY.tries_max))

    async def test_a_proxy_has_errors_without_codes(self) -> None:
        for code, name, tries in ((401, "UNAUTHENTICATED", 1), (404, "INVALID_AGENT_RESPONSE", 1), (429, "UNAVAILABLE", 4)):
            async with BrokenServer(always(Response(status=code))) as server, client_of(server) as client:
                with self.assertRaises(A2AError) as caught:
                    await client.get("t")
                self.assertEqual((caught.exception.code, len(server.requests)), (name, tries))

    async def test_a_redirect_receives_no_headers(self) -> None:
        async with BrokenServer(always(result(task()["task"]))) as target:
            moved = Response(status=307, headers=[f"location: {target.url}"])
            async with BrokenServer(always(moved)) as server, client_of(server) as client:
                with self.assertRaises(A2AError) as caught:
                    await client.get("t")
                self.assertEqual((caught.exception.code, target.requests), ("INVALID_AGENT_RESPONSE", []))

    async def test_a_response_of_the_largest_size_is_read_and_a_larger_one_is_not(self) -> None:
        response = result(task()["task"])
        for bytes_max, is_read in ((len(response.body), True), (len(response.body) - 1, False)):
            limits = ClientLimits(response_bytes_max=bytes_max)
            async with BrokenServer(always(response)) as server, client_of(server, limits=limits) as client:
                if is_read:
                    self.assertEqual((await client.get("t"))["id"], "task-1")
                    continue
                with self.assertRaises(A2AError) as caught:
                    await client.get("t")
                self.assertEqual((caught.exception.code, len(server.requests)), ("INVALID_AGENT_RESPONSE", 1))

    async def test_a_call_may_take_longer_than_its_waits_for_bytes(self) -> None:
        class SlowBody(httpx.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                body = result(task()["task"]).body
                yield body[:9]
                await asyncio.sleep(0.4)
                yield body[9:]

        class SlowNetwork(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                return httpx.Response(200, stream=SlowBody())

        async with httpx.AsyncClient(transport=SlowNetwork()) as http:
            client = Client("http://127.0.0.1:9/", http=http, limits=ClientLimits(call_seconds_max=0.2), retry=RETRY)
            self.assertEqual((await client.get("t"))["id"], "task-1")

    async def test_a_server_that_has_lost_events_continues_before_the_cursor(self) -> None:
        lost = frame({"missing": {"from": 4, "to": 4}}, None, "gap")
        snapshot = frame(task("WORKING", artifacts=[]), 2)
        done = frame(status("COMPLETED"), 900)
        async with (
            BrokenServer(in_turn(stream(*frames(1, 3), is_cut=True), stream(lost, snapshot, done))) as server,
            client_of(server) as client,
        ):
            items = [item async for item in client.events("task-1", cursor=BEGINNING)]
            self.assertEqual(items[3], StreamGap((4, 4)))
            self.assertEqual([item.cursor for item in items[4:] if isinstance(item, StreamEvent)], ["2.102", "900.1000"])
            self.assertEqual(len(server.requests), 2)

    async def test_a_cursor_that_the_server_no_longer_knows_is_a_gap_and_one_of_the_caller_is_an_error(self) -> None:
        unknown = error(-32602, reason="INVALID_PARAMS", metadata={"retryable": "false"})
        responses = in_turn(stream(*frames(1, 4), is_cut=True), unknown, stream(*frames(1, 5)))
        async with BrokenServer(responses) as server, client_of(server) as client:
            items = [item async for item in client.events("task-1", cursor=BEGINNING)]
            cursors = [item.cursor for item in items if isinstance(item, StreamEvent)]
            self.assertEqual(cursors[3:6], ["4.104", "1.101", "2.102"])
            self.assertEqual(items[4], StreamGap(None))
            self.assertEqual([one.headers.get("last-event-id") for one in server.requests], ["0.0", "4.104", None])
        async with BrokenServer(always(unknown)) as server, client_of(server) as client:
            with self.assertRaises(A2AError) as caught:
                [item async for item in client.events("task-1", cursor="9.9")]
            self.assertEqual((caught.exception.code, len(server.requests)), ("INVALID_PARAMS", 1))

    async def test_an_answer_of_a_proxy_ends_a_call_at_its_beginning_and_is_a_broken_connection_in_a_stream(self) -> None:
        page = Response(b"<html>Log in", headers=("content-type: text/html; charset=utf-8",))
        answers = (
            (page, "not an event stream, but text/html: a proxy, or the login page"),
            (Response(status=302, headers=("location: http://login.example/",)), "HTTP 302"),
            (Response(b"404 page not found", status=404, headers=("content-type: text/plain",)), "HTTP 404"),
        )
        for answer, reason in answers:
            async with BrokenServer(always(answer)) as server, client_of(server) as client:
                with self.assertRaisesRegex(A2AError, reason):
                    await client.ask("count")
                self.assertEqual(len(server.requests), 1)
            responses = in_turn(stream(*frames(1, 2), is_cut=True), answer, answer, stream(*frames(3, 5)))
            async with BrokenServer(responses) as server, client_of(server) as client:
                self.assertEqual((await client.ask("count")).text, "a b 🎯")
                self.assertEqual(len(server.requests), 4)

    async def test_a_token_that_expires_in_the_middle_of_a_stream_is_renewed_once(self) -> None:
        refusal = error(-32600, reason="UNAUTHENTICATED")
        refusal = Response(refusal.body, status=401, headers=('www-authenticate: Bearer realm="a"',))

        def respond(n: int, request: Request) -> Response:
            if request.headers["authorization"] == "Bearer new":
                return stream(*frames(3, 5))
            return stream(*frames(1, 2), is_cut=True) if n == 0 else refusal

        refusals: list[str | None] = []

        def headers_of(token: str) -> Callable[[A2AError | None], Any]:
            async def headers(refused: A2AError | None) -> dict[str, str]:
                refusals.append(None if refused is None else refused.code)
                return {"authorization": f"Bearer {'old' if refused is None else token}"}

            return headers

        async with BrokenServer(respond) as server, client_of(server, headers=headers_of("new")) as client:
            self.assertEqual((await client.ask("count")).text, "a b 🎯")
            self.assertEqual((refusals, len(server.requests)), ([None, None, "UNAUTHENTICATED"], 3))
        for token, requests in (("old", 2), ("older", 3)):
            async with BrokenServer(respond) as server, client_of(server, headers=headers_of(token)) as client:
                with self.assertRaises(A2AError) as caught:
                    await client.ask("count")
                self.assertEqual((caught.exception.code, caught.exception.challenge), ("UNAUTHENTICATED", 'Bearer realm="a"'))
                self.assertEqual(len(server.requests), requests)

    async def test_a_function_for_the_headers_that_fails_is_tried_again(self) -> None:
        def wrong(_refused: A2AError | None) -> dict[str, str]:
            calls.append(1)
            return {"authorization": "Bearer secret\n"}

        calls: list[int] = []
        async with BrokenServer(always(Response())) as server, client_of(server, headers=wrong) as client:
            with self.assertRaisesRegex(A2AError, "the function for the headers failed: header 'authorization'") as caught:
                await client.get("t")
            self.assertEqual((len(calls), server.requests), (RETRY.unreached_tries_max, []))
            self.assertNotIn("secret", str(caught.exception))

    async def test_an_error_has_the_delay_that_the_server_asks_for(self) -> None:
        for body in (b"", error(-32603, reason="QUOTA_EXCEEDED", metadata={"retryable": "true"}).body):
            busy = Response(body, status=429, headers=("retry-after: 300",))
            async with BrokenServer(always(busy)) as server, client_of(server) as client:
                with self.assertRaises(A2AError) as caught:
                    await client.get("t")
                self.assertEqual((caught.exception.retry_after_seconds, len(server.requests)), (300, 1))

    async def test_a_silent_stream_and_a_silent_call_are_replaced(self) -> None:
        silent = in_turn(stream(*frames(1, 2), hangs=True), stream(*frames(3, 5)))
        # Long enough for an answer on a loaded machine: only the silence may end the first request.
        limits = ClientLimits(silence_seconds_max=1.0)
        async with BrokenServer(silent) as server, client_of(server, limits=limits) as client:
            self.assertEqual((await client.ask("count")).text, "a b 🎯")
            self.assertEqual(len(server.requests), 2)
        limits = ClientLimits(call_seconds_max=0.05)
        async with BrokenServer(always(Response(hangs=True))) as server, client_of(server, limits=limits) as client:
            with self.assertRaises(A2AError) as caught:
                await client.get("t")
            self.assertEqual(caught.exception.code, "UNAVAILABLE")

    async def test_no_server_fails_after_few_tries(self) -> None:
        async with BrokenServer(always(Response())) as server:
            url = server.url
        async with Client(url, retry=RETRY) as client:
            with self.assertRaises(A2AError) as caught:
                await client.get("t")
            self.assertIn("cannot be reached (ConnectError: ", str(caught.exception))

    async def test_leaving_a_loop_closes_its_connection(self) -> None:
        async with BrokenServer(always(stream(*frames(1, 2), hangs=True))) as server, client_of(server) as client:
            views = client.watch("task-1")
            async for _ in views:
                break
            await views.aclose()
            await asyncio.wait_for(server.closed.wait(), 30)

    async def test_a_cancel_whose_response_was_lost_succeeds(self) -> None:
        def respond(n: int, request: Request) -> Response:
            if request.method == "GetTask":
                return result(task("CANCELED")["task"])
            return Response(is_cut=True) if n == 0 else error(-32002, reason="TASK_NOT_CANCELABLE")

        async with BrokenServer(respond) as server, client_of(server) as client:
            self.assertEqual((await client.cancel("task-1"))["status"]["state"], "TASK_STATE_CANCELED")

    async def test_a_server_without_cursors_is_watched_from_its_current_task(self) -> None:
        artifact = {"artifactId": "a", "parts": [{"text": "a b 🎯"}]}
        final = task("COMPLETED", artifacts=[artifact])["task"]

        def respond(n: int, request: Request) -> Response:
            if request.method == "GetTask":
                return result(final)
            if request.method == "SendStreamingMessage":
                return stream(frame(task(), None), frame(chunk("a ", append=False), None), is_cut=True)
            return error(-32004, reason="UNSUPPORTED_OPERATION")

        async with BrokenServer(respond) as server, client_of(server) as client:
            answer = await client.ask("count")
            self.assertEqual((answer.text, answer.view.gaps), ("a b 🎯", 1))
            self.assertEqual([view.answer async for view in client.watch("task-1")], ["a b 🎯"])

    async def test_lists_have_pages(self) -> None:
        page = {"tasks": [task()["task"]], "nextPageToken": "n", "totalSize": 7}
        responses = in_turn(result(page), result({"tasks": [], "nextPageToken": ""}))
        async with BrokenServer(responses) as server, client_of(server) as client:
            first = await client.list(state="TASK_STATE_WORKING", page_size=1)
            self.assertEqual(([one["id"] for one in first.tasks], first.next_page_token), (["task-1"], "n"))
            self.assertEqual(first.total_size, 7)
            self.assertEqual(server.requests[0].params, {"status": "TASK_STATE_WORKING", "pageSize": 1})
            self.assertEqual((await client.list(page_token="n", agent="guide", min_duration_ms=5)).next_page_token, None)
            self.assertEqual(server.requests[1].params, {"pageToken": "n", "agent": "guide", "minDurationMs": 5})

    async def test_events_of_unknown_kinds_are_skipped(self) -> None:
        unknown = [frame({"other": {}}, 1), frame({"task": {"id": "x", "status": {"state": "NEW"}}}, 2)]
        async with BrokenServer(always(stream(*unknown, *frames(3, 5)))) as server, client_of(server) as client:
            self.assertEqual((await client.ask("count")).text, "b 🎯")

    async def test_a_webhook_is_part_of_the_message_that_starts_its_task(self) -> None:
        push = Webhook("https://hooks.example/a2a", token="t", scheme="Bearer", credentials="c")
        async with BrokenServer(always(stream(*frames(1, 5)))) as server, client_of(server) as client:
            await client.ask("count", push=push)
            await client.ask("count", push=Webhook("https://hooks.example/a2a"))
            await client.ask("count")
            sent = [request.params["configuration"] for request in server.requests]
        whole = {"url": push.url, "token": "t", "authentication": {"scheme": "Bearer", "credentials": "c"}}
        self.assertEqual(sent, [{"taskPushNotificationConfig": whole}, {"taskPushNotificationConfig": {"url": push.url}}, {}])

    async def test_wrong_arguments_are_rejected_before_a_request(self) -> None:
        with self.assertRaises(ValueError):
            Client("ftp://127.0.0.1/")
        async with Client("http://127.0.0.1:9/") as client:
            wrong: list[dict[str, Any]] = [
                {},
                {"task": "t", "question": "q"},
                {"task": "t", "agent": "a"},
                {"task": "t", "push": Webhook("https://hooks.example/")},
            ]
            for arguments in wrong:
                with self.assertRaises(ValueError):
                    [view async for view in client.watch(**arguments)]
