import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Artifact, Part, StreamResponse, TaskState } from '@hopline/a2a';
import { ViewFold } from '@hopline/task-view';
import { recordedStreams } from '@hopline/task-view/test-kit';
import { readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from 'ai';
import fc from 'fast-check';
import { ChunkEncoder } from './encode-chunks.ts';
import type { UiChunk } from './ui-chunk.ts';

const IDS = { taskId: 't', contextId: 'c' };
const STREAMS = recordedStreams();

const task: StreamResponse = { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } } };
const status = (state: TaskState, text?: string): StreamResponse => ({
  statusUpdate: {
    ...IDS,
    status: { state, ...(text !== undefined && { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text }] } }) },
  },
});
const update = (artifact: Artifact, append = false, lastChunk = false): StreamResponse => ({
  artifactUpdate: { ...IDS, artifact, append, lastChunk },
});
const answer = (artifactId: string, text: string, append = false, last = false): StreamResponse =>
  update({ artifactId, name: 'streaming_result', parts: [{ text }] }, append, last);

function encoded(events: readonly StreamResponse[]) {
  const fold = new ViewFold();
  const encoder = new ChunkEncoder('answer-1');
  const chunks: UiChunk[] = [];
  for (const event of events) chunks.push(...encoder.encode(fold.add({ event }), fold));
  return { chunks, view: fold.view, encoder };
}

/** The last message that the AI SDK makes from the chunks, each of which must be valid in its schema. */
async function messageOf(chunks: readonly UiChunk[]): Promise<{ message: UIMessage; errors: string[] }> {
  const { validate } = uiMessageChunkSchema();
  for (const chunk of chunks) {
    // The chunks as the client receives them over the wire.
    const result = await validate!(JSON.parse(JSON.stringify(chunk)));
    assert.ok(result.success, JSON.stringify(chunk));
  }
  const errors: string[] = [];
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(JSON.parse(JSON.stringify(chunk)));
      controller.close();
    },
  });
  let message: UIMessage | undefined;
  for await (const one of readUIMessageStream({ stream, onError: error => errors.push(String(error)) })) message = one;
  return { message: message!, errors };
}

const textOf = ({ parts }: UIMessage) => parts.map(part => (part.type === 'text' ? part.text : '')).join('');

for (const name of ['plain-answer', 'plain-answer-transparent', 'two-agents-at-once', 'agent-killed', 'second-attempt'])
  test(`the AI SDK shows the answer of the recorded task ${name} once, even where an attempt took text back [S2-34]`, async () => {
    const { chunks, view } = encoded(STREAMS.get(name)!.map(({ event }) => event));
    const { message, errors } = await messageOf(chunks);
    assert.deepEqual(errors, []);
    assert.equal(textOf(message), view.answer);
    assert.equal(message.id, 'answer-1');
    const reasoning = message.parts.map(part => (part.type === 'reasoning' ? part.text : '')).join('');
    assert.equal(reasoning, view.plan);
    const tools = message.parts.filter(part => part.type === 'dynamic-tool');
    assert.deepEqual(
      tools.map(({ toolCallId, toolName, state }) => [toolCallId, toolName, state]),
      view.tools.map(({ id, tool }) => [id, tool, 'output-available']),
    );
    assert.deepEqual(message.metadata, { hopline: { taskId: view.taskId, contextId: view.contextId, state: 'completed' } });
    assert.ok(message.parts.every(part => !('state' in part) || /done|available/.test(String(part.state))));
    assert.deepEqual(chunks.at(-1)?.type, 'finish');
    assert.equal(
      chunks.some(({ type }) => type === 'reset-step'),
      /agent-killed|second-attempt/.test(name),
    );
  });

test('the joined text parts are the answer, whatever attempts and agents write', async () => {
  const op = fc.record({
    id: fc.constantFrom('a', 'b'),
    text: fc.string({ unit: fc.constantFrom('x', 'y', '🎯'), maxLength: 3 }),
    replace: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(op, { minLength: 1, maxLength: 15 }), async ops => {
      const events = ops.map(({ id, text, replace }) => answer(id, text, !replace));
      const { chunks, view } = encoded([task, ...events, status('TASK_STATE_COMPLETED')]);
      const { message, errors } = await messageOf(chunks);
      assert.deepEqual(errors, []);
      assert.equal(textOf(message), view.answer);
    }),
    { numRuns: 60 },
  );
});

test('calls, files, data, progress and usage become parts and data of the AI SDK', async () => {
  const notice = (kind: 'start' | 'end', metadata: object): StreamResponse =>
    update({
      artifactId: `${kind}-1`,
      name: `tool_notification_${kind}`,
      parts: [{ text: 'notice\n' }],
      metadata: { ...metadata },
    });
  const call = { sourceAgent: 'weather', tool: 'forecast', toolCallId: 'c1' };
  const file = (artifactId: string, part: Part): StreamResponse =>
    update({ artifactId, name: artifactId, parts: [part] }, false, true);
  const { chunks } = encoded([
    task,
    answer('a', 'hello'),
    notice('start', { ...call, arguments: { city: 'Oslo' } }),
    notice('end', { ...call, failed: true, result: 'no data' }),
    file('a.png', { raw: 'AAAA', mediaType: 'image/png' }),
    file('note', { text: 'ø \ud800', mediaType: 'text/html' }),
    file('link', { url: 'https://example.org/x', mediaType: 'text/css' }),
    file('rows', { data: { rows: [1] } }),
    file('script', { url: 'JavaScript:alert(1)', mediaType: 'text/plain' }),
    status('TASK_STATE_WORKING', 'half'),
    status('TASK_STATE_COMPLETED'),
  ]);
  const { message, errors } = await messageOf(chunks);
  assert.deepEqual(errors, []);
  const tool = message.parts.find(part => part.type === 'dynamic-tool');
  assert.deepEqual([tool?.state, tool?.input, tool?.errorText], ['output-error', { city: 'Oslo' }, 'no data']);
  assert.deepEqual(
    message.parts.flatMap(part => (part.type === 'file' ? [[part.mediaType, part.url]] : [])),
    [
      ['image/png', 'data:image/png;base64,AAAA'],
      ['text/html', 'data:text/html;charset=utf-8,%C3%B8%20%EF%BF%BD'],
      ['text/css', 'https://example.org/x'],
    ],
  );
  // A link that would run in the page does not become a file.
  const data = message.parts.filter(part => part.type === 'data-artifact');
  assert.deepEqual(data, [
    { type: 'data-artifact', id: 'rows.0', data: { name: 'rows', data: { rows: [1] } } },
    {
      ...{ type: 'data-artifact', id: 'script.0' },
      data: { name: 'script', data: { url: 'JavaScript:alert(1)', mediaType: 'text/plain' } },
    },
  ]);
  assert.deepEqual(
    chunks.find(({ type }) => type === 'data-progress'),
    {
      type: 'data-progress',
      id: 'progress',
      data: { line: 'half', agent: undefined },
      transient: true,
    },
  );
  assert.equal(textOf(message), 'hello');
});

test('a question is text and data, and the message has the task that waits', async () => {
  const { chunks, encoder } = encoded([task, answer('a', 'Let me see. '), status('TASK_STATE_INPUT_REQUIRED', 'Which one?')]);
  const { message } = await messageOf(chunks);
  assert.equal(textOf(message), 'Let me see. Which one?');
  assert.deepEqual(message.metadata, { hopline: { taskId: 't', contextId: 'c', state: 'input-required' } });
  assert.deepEqual(message.parts.at(-1), { type: 'data-question', id: 'question', data: { kind: 'input', text: 'Which one?' } });
  assert.equal(encoder.ended, true);
});

test('a failure is an error with its reason, and a cancel an abort', async () => {
  const failed = await messageOf(encoded([task, answer('a', 'x'), status('TASK_STATE_FAILED', 'no such city')]).chunks);
  assert.deepEqual(failed.errors, ['Error: no such city']);
  assert.deepEqual(encoded([task, status('TASK_STATE_REJECTED')]).chunks.at(-1), {
    type: 'error',
    errorText: 'the task is rejected',
  });
  assert.deepEqual(encoded([task, status('TASK_STATE_CANCELED')]).chunks.at(-1), { type: 'abort' });
});

test('a plan that is written again is another reasoning part, and the answer stays', async () => {
  const plan = (text: string): StreamResponse => update({ artifactId: 'p', name: 'execution_plan_update', parts: [{ text }] });
  const { chunks } = encoded([task, plan('first'), answer('a', 'x'), plan('second'), status('TASK_STATE_COMPLETED')]);
  const { message } = await messageOf(chunks);
  assert.deepEqual(
    message.parts.flatMap(part => (part.type === 'reasoning' ? [part.text] : [])),
    ['first', 'second'],
  );
  assert.ok(!chunks.some(({ type }) => type === 'reset-step'));
  assert.equal(textOf(message), 'x');
});
