import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ViewFold } from '@hopline/task-view';
import { type RecordedEvent, recordedStreams } from '@hopline/task-view/test-kit';
import fc from 'fast-check';
import { ChatEncoder } from './chat-encoder.ts';
import { ResponseEncoder, type ResponseEvent } from './response-encoder.ts';

const STREAMS = recordedStreams();

type Encoded = { events: ResponseEvent[]; encoder: ResponseEncoder };

function encoded(stream: readonly RecordedEvent[], turn = 1): Encoded {
  const encoder = new ResponseEncoder({ taskId: 't', turn });
  return { events: stream.flatMap(item => encoder.add(item)), encoder };
}

/** The text of each output item according to the deltas, without items that were taken back. */
function textOfEvents(events: readonly ResponseEvent[]): string {
  const texts = new Map<unknown, string>();
  for (const event of events) {
    const { type, item_id: id, delta } = event;
    if (type === 'response.output_text.delta') texts.set(id, (texts.get(id) ?? '') + String(delta));
    const item = event.item as { id: string; status: string } | undefined;
    if (type === 'response.output_item.done' && item?.status === 'incomplete') texts.delete(item.id);
  }
  return [...texts.values()].join('');
}

for (const [name, stream] of STREAMS) {
  test(`the response of the recorded task ${name} has its answer, in whole brackets and numbers without a gap`, () => {
    const fold = new ViewFold();
    for (const item of stream) fold.add(item);
    const { view } = fold;
    const { events, encoder } = encoded(stream, view.turn);
    assert.deepEqual(
      events.map(event => event.sequence_number),
      events.map((_, index) => index),
    );
    assert.equal(events[0]?.type, 'response.created');
    assert.match(events.at(-1)!.type, /^response\.(completed|failed|incomplete)$/);
    assert.equal(textOfEvents(events), view.answer);
    const open = new Set<unknown>();
    for (const { type, output_index: index } of events) {
      if (type === 'response.output_item.added') open.add(index);
      if (type === 'response.output_item.done') assert.ok(open.delete(index), `${type} ${String(index)}`);
    }
    assert.deepEqual([...open], []);
    const { output } = encoder.response();
    const texts = output.flatMap(({ type, content }) => (type === 'message' ? (content as { text: string }[]) : []));
    assert.equal(texts.map(({ text }) => text).join(''), view.answer);
  });

  test(`the chat completion of the recorded task ${name} has its answer`, () => {
    const encoder = new ChatEncoder({ model: 'writer' });
    const chunks = stream.flatMap(item => encoder.add(item));
    const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
    const fold = new ViewFold();
    for (const item of stream) {
      fold.add(item);
      if (fold.view.question !== undefined) break;
    }
    const { answer, question, failure, state } = fold.view;
    const whole = question === undefined ? answer : [answer, question.text].filter(one => one !== '').join('\n\n');
    if (!text.includes('is void')) assert.equal(text, whole);
    assert.equal(encoder.completion().choices[0]!.message.content, whole);
    const hasFailed = state !== 'TASK_STATE_COMPLETED' && question === undefined;
    assert.equal(encoder.failure?.error.message, hasFailed ? (failure ?? 'the task is canceled') : undefined);
  });
}

test('a reader that begins again at any event gets the same numbers', () => {
  fc.assert(
    fc.property(fc.constantFrom(...STREAMS.keys()), fc.double({ min: 0, max: 1, noNaN: true }), (name, place) => {
      const stream = STREAMS.get(name)!;
      const first = encoded(stream.slice(0, Math.ceil(place * stream.length)));
      const second = encoded(stream);
      assert.deepEqual(second.events.slice(0, first.events.length), first.events);
    }),
  );
});
