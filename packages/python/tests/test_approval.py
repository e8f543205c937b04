import unittest
from typing import Any

from hopline import approval_response
from hopline.approval import approval_question, read_approval_response


def response(**members: Any) -> dict[str, Any]:
    return {"data": {"approvalResponse": {"callId": "c-1", **members}}}


class ApprovalTest(unittest.TestCase):
    """The cases are those of packages/a2a/src/approval.test.ts and packages/client/src/approval-response.test.ts."""

    def test_a_response_has_its_text_for_agents_that_read_no_data(self) -> None:
        request = {"callId": "c-1", "tool": "refund", "arguments": {"order": "17"}}
        approved = [{"text": "Approved"}, response(approved=True)]
        self.assertEqual(approval_response(request, True), approved)
        self.assertEqual(approval_response(request, True, " "), approved)
        self.assertEqual(approval_response(request, False), [{"text": "Refused"}, response(approved=False)])
        late = response(approved=False, reason="too late")
        self.assertEqual(approval_response(request, False, " too late "), [{"text": "too late"}, late])
        with self.assertRaises(TypeError):
            approval_response(request, "no")  # type: ignore[arg-type]

    def test_the_question_has_the_text_of_the_typescript_kit(self) -> None:
        self.assertEqual(approval_question("refund", {"an": "é", "n": [1, True, None]}), 'Run refund with {"an":"é","n":[1,true,null]}?')

    def test_five_plain_texts_approve_and_every_other_text_refuses_with_its_reason(self) -> None:
        for text in ("yes", " Y ", "OK", "Approve!", "approved..", "yes.!"):
            self.assertEqual(read_approval_response([{"text": text}], "c-1"), (True, None), text)
        for text in ("no", "yes please", "yes?", "y e s", "sure", "1"):
            self.assertEqual(read_approval_response([{"text": text}], "c-1"), (False, text))
        self.assertEqual(read_approval_response([{"text": " "}, {"raw": "eWVz"}], "c-1"), (False, None))
        self.assertEqual(read_approval_response([{"text": "ye"}, {"text": "s"}], "c-1"), (True, None))

    def test_only_a_response_for_this_call_approves(self) -> None:
        other = (False, "The response names a different call; c-1 is waiting.")
        no_boolean = (False, "The response has no boolean `approved`.")
        cases: list[tuple[list[dict[str, Any]], tuple[bool, str | None]]] = [
            ([response(approved=True, reason="go")], (True, "go")),
            ([response(approved=False, reason="no")], (False, "no")),
            ([{"text": "no"}, response(approved=True)], (True, None)),
            ([{"text": "yes"}, response(approved=True, callId="c-2")], other),
            ([{"text": "yes"}, {"data": {"approvalResponse": "yes"}}], other),
            ([{"text": "yes"}, {"data": {"approvalResponse": None}}], other),
            ([response(approved="true")], no_boolean),
            ([response(approved=1)], no_boolean),
            ([response()], no_boolean),
            ([response(approved=True), response(approved=False, reason="wait")], (False, "wait")),
            ([response(approved=True), response()], no_boolean),
            ([response(approved=True, callId="c-2"), response(approved=True)], (True, None)),
            ([response(approved=True, reason=5)], (True, None)),
            ([{"text": "yes"}, {"data": {"approvalRequest": {}}}], (True, None)),
            ([{"text": "yes"}, {"data": ["approvalResponse"]}], (True, None)),
        ]
        for parts, decision in cases:
            with self.subTest(parts=parts):
                self.assertEqual(read_approval_response(parts, "c-1"), decision)
