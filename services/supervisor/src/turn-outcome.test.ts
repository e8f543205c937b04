import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, ArtifactInput } from '@hopline/events';
import { InputWriter, WRITER_WAITING_BYTES_MAX } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { Scenario, supervisor } from '@hopline/task/test-kit';
import { addResult, RESULT_BYTES_MAX } from './turn-outcome.ts';
import { TurnView } from './turn-view.ts';

const LANE = '1/result';
const ARTIFACT = { name: 'final_result' };

async function added(view: TurnView, text: string): Promise<AgentInput[]> {
  const inputs: AgentInput[] = [];
  const writer = { add: (input: AgentInput) => void inputs.push(input), ready: async () => {} } as unknown as InputWriter;
  await addResult({ view, writer }, LANE, ARTIFACT, text);
  return inputs;
}

const chunksOf = (inputs: AgentInput[]) => inputs.filter(input => input.kind === 'artifact') as ArtifactInput[];
const textOf = (inputs: AgentInput[]) =>
  chunksOf(inputs)
    .map(({ parts }) => parts[0]!.text)
    .join('');

test('a result of up to RESULT_BYTES_MAX bytes of UTF-8 is one event; a longer one is cut between characters', async () => {
  for (const [unit, bytes] of [
    ['x', 1],
    ['語', 3],
    ['👩‍👩‍👧', 18],
  ] as const) {
    const count = Math.floor(RESULT_BYTES_MAX / bytes);
    assert.equal((await added(new TurnView(), unit.repeat(count))).length, 1);
    const text = unit.repeat(count + 1);
    const chunks = chunksOf(await added(new TurnView(), text));
    assert.deepEqual(
      chunks.map(({ append, last }) => [append, last]),
      [
        [false, false],
        [true, true],
      ],
    );
    assert.deepEqual(
      chunks.map(({ parts }) => parts[0]!.text),
      [unit.repeat(count), unit],
    );
  }
});

test('350,000 Chinese characters, or as many characters that JSON escapes, fit into records of 1 MiB', async () => {
  for (const text of ['語'.repeat(350_000), '\u0001'.repeat(350_000)]) {
    const inputs = await added(new TurnView(), text);
    assert.equal(textOf(inputs), text);
    for (const input of inputs) assert.ok(Buffer.byteLength(JSON.stringify(input)) < 800 * 1024);
  }
});

test("a result larger than the writer's buffer is appended whole", async () => {
  const log = createMemoryLog();
  const producer = { id: 'supervisor', agent: 'supervisor', turn: 1, item: 1, attempt: 1 };
  const writer = new InputWriter(log.inputs, { taskId: 't', producer });
  // A source that does not wait for the writer would fail at 16 times that size.
  const text = 'x'.repeat(17 * WRITER_WAITING_BYTES_MAX);
  await addResult({ view: new TurnView(), writer }, LANE, ARTIFACT, text);
  await writer.flush();
  const inputs: AgentInput[] = [];
  for await (const { record } of log.inputs.read('t')) if ('inputs' in record) inputs.push(...record.inputs);
  assert.equal(textOf(inputs), text);
});

test('a supervisor that takes over replaces a partly stored result, and does not repeat a whole one', async () => {
  const text = 'x'.repeat(RESULT_BYTES_MAX + 1);
  const [first, second] = chunksOf(await added(new TurnView(), text));
  const task = new Scenario().message('hello').input(supervisor(), first!);
  const view = () => {
    const folded = new TurnView();
    folded.apply({ seq: 1, record: { v: 1, facts: task.facts, aggregate: task.aggregate!, startSeq: 0, startStoredAt: 0 } });
    return folded;
  };
  const again = await added(view(), text);
  for (const input of again) task.input(supervisor(2), input as Exclude<AgentInput, { kind: 'text' }>);
  assert.deepEqual([task.rejected, task.view?.task.artifacts?.length], [[], 1]);
  assert.equal(task.view?.task.artifacts?.[0]?.parts.map(part => part.text).join(''), text);
  assert.equal(second?.last, true);
  assert.deepEqual(await added(view(), text), []);
});
