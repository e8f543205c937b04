import unittest

from hopline import ViewFold, ViewQuestion
from hopline.view_files import ViewFiles

from .broken_server import chunk, status, task


class ViewFoldTest(unittest.TestCase):
    """The tests of the rules are those of packages/task-view: `npm test` compares both folds. These are about what is particular to Python."""

    def test_views_are_immutable_and_keep_what_did_not_change(self) -> None:
        fold = ViewFold()
        fold.add(task())
        fold.add(chunk("x", append=False))
        view = fold.view
        fold.add(chunk("y"))
        # A view that is read later has the text of its own moment.
        self.assertEqual((view.answer, fold.view.answer), ("x", "xy"))
        self.assertIs(fold.view.tools, view.tools)
        self.assertIs(fold.view, fold.view)
        with self.assertRaises(AttributeError):
            view.state = "other"  # type: ignore[misc]

    def test_a_view_of_the_text_before_a_restart_keeps_it(self) -> None:
        fold = ViewFold()
        for event in (task(), chunk("one two", append=False)):
            fold.add(event)
        before = fold.view
        fold.add(chunk("one", append=False))
        self.assertEqual(fold.add(chunk(" four")), ["text-restarted"])
        self.assertEqual((before.answer, fold.view.answer), ("one two", "one four"))

    def test_a_question_that_asks_to_approve_a_call_has_the_call(self) -> None:
        def asked(state: str, *data: object) -> ViewQuestion:
            fold = ViewFold()
            event = status(state)
            parts = [{"text": "Refund it?"}, *({"data": one} for one in data)]
            event["statusUpdate"]["status"]["message"] = {"messageId": "q", "role": "ROLE_AGENT", "parts": parts}
            fold.add(event)
            assert fold.view.question is not None
            return fold.view.question

        call = {"callId": "c1", "tool": "refund", "arguments": {"order": "17"}}
        question = asked("INPUT_REQUIRED", {"approvalRequest": call})
        self.assertEqual((question.approval, question.to_json()["approval"]), (call, call))
        self.assertEqual(asked("AUTH_REQUIRED", {"approvalRequest": call}).approval, None)
        others = ["approvalRequest", {"approvalRequest": 1}, {"approvalRequest": {**call, "callId": ""}}, {"approvalRequest": {**call, "arguments": []}}]
        self.assertEqual(asked("INPUT_REQUIRED", *others).approval, None)
        self.assertNotIn("approval", asked("INPUT_REQUIRED").to_json())

    def test_halves_of_a_character_from_two_events_are_joined(self) -> None:
        fold = ViewFold()
        for event in (task(), chunk("a \ud83c", append=False), chunk("\udfaf b"), status("COMPLETED")):
            fold.add(event)
        self.assertEqual(fold.view.answer, "a 🎯 b")
        self.assertEqual(fold.view.texts[0].text.encode(), "a 🎯 b".encode())

    def test_text_is_not_copied_while_its_views_are_not_read(self) -> None:
        words = [f"word {index} " for index in range(5_000)]
        fold = ViewFold()
        fold.add(task())
        views = []
        for index, word in enumerate(words):
            fold.add(chunk(word, append=index > 0))
            views.append(fold.view)
        content = fold._texts._texts["a"].content
        # A copy would have joined the pieces.
        self.assertEqual(content._pieces, words)
        self.assertEqual(views[1].answer, "word 0 word 1 ")
        # An attempt that repeats the text makes no change.
        self.assertEqual(sum(len(fold.add(chunk(word, append=index > 0))) for index, word in enumerate(words)), 0)
        self.assertEqual(fold.view.answer, "".join(words))

    def test_a_view_keeps_as_many_bytes_of_files_as_its_limit_and_counts_the_rest(self) -> None:
        files = ViewFiles(lambda _kind: None, bytes_max=5)
        for file_id, text in (("full", "abcü"), ("over", "1")):
            parts = [{"text": text}]
            files.update({"artifactId": file_id}, 1, parts, is_replacement=True, has_beginning=True)
        shown = [(file.id, file.bytes, file.missing, list(file.parts)) for file in files.show()]
        self.assertEqual(shown, [("full", 5, None, [{"text": "abcü"}]), ("over", 1, "excess", [])])
        files.keep_only({"over"})
        files.update({"artifactId": "over"}, 1, [{"text": "12345"}], is_replacement=True, has_beginning=True)
        self.assertEqual(files.show()[0].missing, None)
