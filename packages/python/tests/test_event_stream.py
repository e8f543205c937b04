import unittest

from hopline import A2AError
from hopline.event_stream import EventStreamDecoder, ServerSentEvent

STREAM = ': ok\r\n\r\nid: 1.2\r\ndata: {"a":\r\ndata:  "🎯"}\r\n\r\nevent: drain\rretry: 1500\rdata: x\r\rdata: y\nid: 3.4\n\ndata: lost'
EVENTS = [
    ServerSentEvent("message", '{"a":\n "🎯"}', "1.2"),
    ServerSentEvent("drain", "x", None),
    ServerSentEvent("message", "y", "3.4"),
]


class EventStreamTest(unittest.TestCase):
    def test_chunks_may_be_split_anywhere(self) -> None:
        data = STREAM.encode()
        for size in range(1, len(data) + 1):
            decoder = EventStreamDecoder(100)
            chunks = [data[at : at + size] for at in range(0, len(data), size)]
            self.assertEqual([event for one in chunks for event in decoder.feed(one)], EVENTS, size)
            self.assertEqual(decoder.retry_seconds, 1.5)

    def test_line_ends_may_be_mixed_and_split_anywhere(self) -> None:
        data = b"data: a\r\n\ndata: b\n\r\ndata: c\r\n\r\n"
        for size in range(1, len(data) + 1):
            decoder = EventStreamDecoder(100)
            chunks = [data[at : at + size] for at in range(0, len(data), size)]
            self.assertEqual([event.data for one in chunks for event in decoder.feed(one)], ["a", "b", "c"], size)

    def test_an_event_of_the_largest_size_is_accepted_and_a_larger_one_is_not(self) -> None:
        for size, is_accepted in ((20, True), (21, False)):
            line = f"data: {'x' * (size - len('data: '))}\n\n".encode()
            for chunks in ([line], [line[at : at + 1] for at in range(len(line))]):
                decoder = EventStreamDecoder(20)
                if is_accepted:
                    self.assertEqual(len([event for one in chunks for event in decoder.feed(one)]), 1)
                    continue
                with self.assertRaises(A2AError) as caught:
                    for one in chunks:
                        decoder.feed(one)
                self.assertEqual(caught.exception.code, "INVALID_AGENT_RESPONSE")
                self.assertFalse(caught.exception.retryable)
