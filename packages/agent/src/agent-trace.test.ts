import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Requeued } from '@hopline/log';
import { createLogger } from '@hopline/telemetry';
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { AttemptFailed } from './attempt-failed.ts';
import { type Agent, type AgentDefinition, type AgentEvent, artifact, defineAgent, done, failed, notice } from './index.ts';
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

test('spans that an agent begins are below the receipt of its turn, which is exported first, even if the agent waits', async () => {
  memory.reset();
  await run(async function* (turn) {
    yield 'a';
    await new Promise(resolve => setTimeout(resolve, 5));
    turn.tracer.startActiveSpan('look up', span => span.end());
    yield 'b';
  });
  const spans = memory.getFinishedSpans();
  const turn = spans.find(({ name }) => name === 'receive a2a.work.{role}.{taskId}');
  const child = spans.find(({ name }) => name === 'look up');
  assert.ok(turn && child);
  assert.equal(child.parentSpanContext?.spanId, turn.spanContext().spanId);
});

test('an error that an agent throws is logged with its class and source location, without its text', async () => {
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

test('a turn that completes without an answer is shown to the author of the agent, and logged', async () => {
  for (const [body, isEmpty] of [
    [async function* () {}, true],
    [
      async function* () {
        yield '';
        yield notice('Working');
      },
      true,
    ],
    [
      async function* () {
        yield 'a';
      },
      false,
    ],
    [
      async function* () {
        yield artifact({ name: 'a.txt', text: 'a' });
      },
      false,
    ],
    [
      async function* () {
        yield done();
      },
      true,
    ],
    [
      async function* () {
        yield failed('no');
      },
      false,
    ],
  ] as [AgentDefinition['run'], boolean][]) {
    const lines: string[] = [];
    const logger = createLogger({ service: 't', instance: 't', level: 'info', destination: { write: line => lines.push(line) } });
    const shown: unknown[] = [];
    await run(body, logger, error => shown.push(error));
    assert.equal(
      lines.some(line => line.includes('agent completed a turn without text, artifact or message')),
      isEmpty,
    );
    assert.deepEqual(shown, isEmpty ? ['a turn completed without text, artifact or message, so its answer is empty'] : []);
  }
});

test('an error that an agent throws or causes is shown to its author, and is in no span', async () => {
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
  const turn = memory.getFinishedSpans().find(({ name }) => name === 'invoke_agent a');
  assert.equal(turn?.attributes['error.type'], 'RangeError');
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

test('the span of a retried attempt is an error with its cause; the span of a requeued attempt is not [S4-40]', async () => {
  const ended = async (
    end: (signal: AbortController) => AgentEvent,
  ): Promise<{ isError: boolean; attributes: Record<string, unknown> }> => {
    memory.reset();
    const task = await TaskLog.create('caipe');
    const stop = new AbortController();
    const agent: Agent = {
      description: 'd',
      skills: async () => [],
      async *run() {
        yield end(stop);
      },
      close: async () => {},
    };
    const deps = { log: task.log, agent, name: 'a', logger: quiet, signal: stop.signal, retries: 1 };
    await assert.rejects(runTurn(deps, task.job()), error => error instanceof Requeued || error instanceof AttemptFailed);
    const { status, attributes } = memory.getFinishedSpans().find(({ name }) => name === 'invoke_agent a')!;
    return { isError: status.code === SpanStatusCode.ERROR, attributes };
  };
  const retried = await ended(() => ({ type: 'failed', reason: 'a secret', retryable: true, cause: 'http_500' }));
  assert.deepEqual(
    [retried.isError, retried.attributes['error.type'], retried.attributes['hopline.outcome']],
    [true, 'http_500', 'failed'],
  );
  const requeued = await ended(stop => {
    stop.abort();
    return { type: 'text', text: 'so far' };
  });
  assert.deepEqual([requeued.isError, requeued.attributes['hopline.outcome']], [false, 'requeued']);
});
