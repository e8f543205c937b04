import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createLogger } from '@hopline/telemetry';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { type AgentDefinition, defineAgent } from './index.ts';
import { runTurn } from './run-turn.ts';
import { quiet, TaskLog } from './task-log.test-kit.ts';

const memory = new InMemorySpanExporter();

before(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: memory })] }));
});
after(() => {
  context.disable();
  trace.disable();
});

async function run(body: AgentDefinition['run'], logger = quiet, showError?: (error: unknown) => void): Promise<void> {
  const task = await TaskLog.create('caipe');
  const agent = defineAgent({ name: 'a', description: 'd', run: body });
  await runTurn({ log: task.log, agent, name: 'a', logger, showError, signal: new AbortController().signal }, task.job());
}

test('spans an agent begins are below the receipt of its turn, which is exported before, also after it has waited', async () => {
  memory.reset();
  await run(async function* (turn) {
    yield 'a';
    await new Promise(resolve => setTimeout(resolve, 5));
    turn.tracer.startActiveSpan('look up', span => span.end());
    yield 'b';
  });
  const spans = memory.getFinishedSpans();
  const turn = spans.find(({ name }) => name === 'receive a2a.work.{role}.{taskId}');
  const own = spans.find(({ name }) => name === 'look up');
  assert.ok(turn && own);
  assert.equal(own.parentSpanContext?.spanId, turn.spanContext().spanId);
});

test('what an agent throws is logged by its class and its place in the source, without its words', async () => {
  const lines: string[] = [];
  const logger = createLogger({ service: 't', instance: 't', level: 'info', destination: { write: line => lines.push(line) } });
  await run(async function* (turn) {
    turn.log.info`working on ${turn.attempt}`;
    yield 'a';
    throw new RangeError('a secret\n    at secret.ts:1:1');
  }, logger);
  const [working, threw] = lines.map(line => JSON.parse(line) as Record<string, unknown>);
  assert.equal(working?.msg, 'working on 1');
  assert.equal(threw?.reason, 'RangeError');
  assert.match(String(threw?.path), /^agent-trace\.test\.ts:\d+$/);
  assert.ok(!lines.join('').includes('secret'));
});

test('what an agent throws, or yields wrongly, is shown to its author, and stands in no span', async () => {
  memory.reset();
  const shown: unknown[] = [];
  const thrown = new RangeError('a secret');
  const show = (error: unknown) => void shown.push(error);
  await run(
    // biome-ignore lint/correctness/useYield: it throws first
    async function* () {
      throw thrown;
    },
    quiet,
    show,
  );
  assert.deepEqual(shown, [thrown]);
  await run(
    async function* () {
      yield 7 as never;
    },
    quiet,
    show,
  );
  assert.match(String(shown[1]), /run yielded a number/);
  assert.ok(
    !JSON.stringify(
      memory.getFinishedSpans().map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
    ).includes('secret'),
  );
});
