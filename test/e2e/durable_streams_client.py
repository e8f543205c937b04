"""Reads the beginning of the stream at the given address with the Python client and prints a line. Then it follows the stream, disconnects after
two messages, resumes, and prints all messages as JSON."""

import json
import sys

from durable_streams import stream

# The text that follows the first line has more.
MESSAGES_BEFORE_CUT = 2


def read(offset, live, count=None):
    messages = []
    with stream(sys.argv[1], offset=offset, live=live) as response:
        for message in response.iter_json():
            messages.append(message)
            if count is not None and len(messages) >= count:
                break
    return messages


# A position that the client saves is the offset of a whole response, so this read ends with a response.
with stream(sys.argv[1], offset="-1", live=False) as first:
    before = first.read_json()
    saved = first.offset
print("begun", flush=True)
before_mode, after_mode = "long-poll", "sse"
middle = read(saved, before_mode, MESSAGES_BEFORE_CUT)
rest = read(saved, after_mode)
assert rest[: len(middle)] == middle, "a resumed stream repeats what follows the offset"
print(json.dumps(before + rest))
