import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TaskAggregate } from '@hopline/events';
import { InputWriter, Superseded } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { until } from '../../../test/kit/until.ts';
import { showLostInputs } from './lost-inputs.ts';

const CHECK_MS = 20;

async function inputsOf(log: MemoryLog): Promise<{ n: number; kinds: string[] }[]> {
  const found: { n: number; kinds: string[] }[] = [];
  for await (const { record } of log.inputs.read('t'))
    if ('inputs' in record) found.push({ n: record.n, kinds: record.inputs.map(({ kind }) => kind) });
  return found;
}

for (const [fate, isShown] of [
  ['is removed before it is folded', true],
  ['was folded before it is removed', false],
  ['is stored', false],
] as const) {
  test(`a supervisor whose last input ${fate} writes ${isShown ? 'another one, which shows the gap' : 'nothing'}`, async () => {
    const log = createMemoryLog();
    const producer = { id: 'supervisor', agent: 'supervisor', turn: 1, item: 1, attempt: 1 };
    const writer = new InputWriter(log.inputs, { taskId: 't', producer });
    const stop = new AbortController();
    let checks = 0;
    const extent = log.inputs.extent.bind(log.inputs);
    log.inputs.extent = () => {
      checks += 1;
      // The first check fails, because the log is unavailable.
      return checks === 1 ? Promise.reject(new Error('away')) : extent();
    };
    writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
    await writer.flush();
    const lastSeq = writer.lastSeq!;
    // Later inputs of another producer are already folded.
    const lastN = fate.startsWith('was folded') ? 1 : 0;
    const producers = { supervisor: { item: 1, attempt: 1, n: 0, lastN } };
    if (fate !== 'is stored') log.expireAll('inputs', lastSeq + 1);
    const view = { aggregate: { foldedSeq: lastSeq + 1, producers } as unknown as TaskAggregate };
    const showing = showLostInputs({ log, taskId: 't', view, writer, producer, signal: stop.signal, checkMs: CHECK_MS }).catch(
      () => {},
    );
    if (isShown) await until(async () => (await inputsOf(log)).length > 0);
    else await new Promise(resolve => setTimeout(resolve, CHECK_MS * 5));
    stop.abort();
    await showing;
    const stored = fate === 'is stored' ? [{ n: 1, kinds: ['status'] }] : [];
    assert.deepEqual(await inputsOf(log), isShown ? [{ n: 2, kinds: ['close'] }] : stored);
  });
}

test('a supervisor releases its item if its inputs are not folded and another supervisor has begun the item', async () => {
  const log = createMemoryLog();
  const producer = { id: 'supervisor', agent: 'supervisor', turn: 1, item: 1, attempt: 1 };
  const writer = new InputWriter(log.inputs, { taskId: 't', producer });
  writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  await writer.flush();
  const { signal } = new AbortController();
  const answers = [() => Promise.reject(new Error('away')), async () => false, async () => true];
  const folded = { supervisor: { item: 1, attempt: 1, n: 1 } };
  for (const [producers, isSuperseded] of [
    [{}, true],
    [folded, false],
  ] as const) {
    const stop = AbortSignal.timeout(CHECK_MS * 10);
    const view = { aggregate: { producers } as unknown as TaskAggregate };
    const isTakenOver = () => (isSuperseded ? answers.shift()!() : assert.fail('asked'));
    const context = { log, taskId: 't', view, writer, producer, isTakenOver, checkMs: CHECK_MS };
    if (isSuperseded) await assert.rejects(showLostInputs({ ...context, signal }), Superseded);
    else await showLostInputs({ ...context, signal: stop });
  }
});
