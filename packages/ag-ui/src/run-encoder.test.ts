import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BaseEvent, verifyEvents } from '@ag-ui/client';
import { EventSchemas } from '@ag-ui/core/schemas';
import { ViewFold } from '@hopline/task-view';
import { type RecordedEvent, recordedStreams } from '@hopline/task-view/test-kit';
import fc from 'fast-check';
import { from, lastValueFrom, toArray } from 'rxjs';
import type { AgUiEvent } from './ag-ui-event.ts';
import { RunEncoder } from './run-encoder.ts';

const STREAMS = recordedStreams();

/** The events of a run whose stream begins after `stored` events of the log. */
function encoded(stream: readonly RecordedEvent[], turn: number, stored = 0): AgUiEvent[] {
  const encoder = new RunEncoder({ threadId: 'th', runId: 'r', messages: [], state: { mine: 1 }, turn });
  return stream.flatMap((item, index) => encoder.add(item, { isStored: index + 1 < stored }));
}

/** Passes the events through the schemas and the verifier of AG-UI. */
async function verified(events: readonly AgUiEvent[]): Promise<void> {
  const parsed = events.map(event => EventSchemas.parse(JSON.parse(JSON.stringify(event))) as BaseEvent);
  assert.equal((await lastValueFrom(from(parsed).pipe(verifyEvents(), toArray()))).length, events.length);
}

/** The answer as a client has it. A client replaces its messages with those of a snapshot. */
function answerOf(events: readonly AgUiEvent[]): string {
  let texts = new Map<string, string>();
  for (const event of events) {
    if (event.type === 'TEXT_MESSAGE_START') texts.set(event.messageId, texts.get(event.messageId) ?? '');
    if (event.type === 'TEXT_MESSAGE_CONTENT') texts.set(event.messageId, texts.get(event.messageId)! + event.delta);
    if (event.type !== 'MESSAGES_SNAPSHOT') continue;
    const shown = event.messages as { id: string; role: string; content?: string }[];
    texts = new Map(
      shown.flatMap(({ id, role, content }) => (role === 'assistant' && content !== undefined ? [[id, content]] : [])),
    );
  }
  return [...texts.values()].join('');
}

test('a run that is resumed after any event of any recorded task passes the verifier, and has the answer', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...STREAMS.keys()), fc.double({ min: 0, max: 1, noNaN: true }), async (name, place) => {
      const stream = STREAMS.get(name)!;
      const fold = new ViewFold();
      for (const item of stream) fold.add(item);
      const { answer, turn, failure } = fold.view;
      const events = encoded(stream, turn, Math.round(place * stream.length));
      await verified(events);
      assert.equal(events[0]?.type, 'RUN_STARTED');
      assert.equal(
        events.at(-1)?.type,
        failure === undefined || fold.view.state === 'TASK_STATE_CANCELED' ? 'RUN_FINISHED' : 'RUN_ERROR',
      );
      assert.equal(answerOf(events), answer);
    }),
    { numRuns: 200 },
  );
});

test('a question ends a run with an interrupt', async () => {
  const events = encoded(STREAMS.get('question-and-second-turn')!, 1);
  await verified(events);
  const end = events.at(-1);
  assert.ok(end?.type === 'RUN_FINISHED' && end.outcome.type === 'interrupt');
  assert.deepEqual(end.outcome.interrupts, [
    { id: '01b8dac5-b9dd-7000-8000-1c0700000007.1', reason: 'input_required', message: 'Which one?' },
  ]);
});
