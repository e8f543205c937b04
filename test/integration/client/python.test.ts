import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { A2A_ERRORS } from '@hopline/a2a';
import { createClient } from '@hopline/client';
import { ViewFold, type ViewItem } from '@hopline/task-view';
import { type RecordedEvent, recordedStreams, snapshotAfter } from '@hopline/task-view/test-kit';
import fc from 'fast-check';
import { type ConnectionFault, startBadServer } from '../../../packages/client/src/bad-server.test-kit.ts';
import { collect } from '../../kit/collect.ts';
import { startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { PythonDriver, pythonEnv } from '../../support/python/python-driver.ts';
import {
  httpxRequirement,
  PYTHON_PACKAGE,
  pythonsWithPackages,
  pythonWithHttpx,
} from '../../support/python/python-with-httpx.ts';

const found = await pythonWithHttpx();
const python = 'python' in found ? found.python : '';
const skip = 'skip' in found ? found.skip : false;
const STREAMS = recordedStreams();
type Steps = { steps: { kinds: string[]; view: unknown }[] };
type View = { answer: string; state: string; taskId: string; turn: number; question?: { text: string }; failure?: string };

const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function stepsOf(items: readonly ViewItem[], continues: boolean): Steps {
  const fold = new ViewFold({ continues });
  return { steps: items.map(item => ({ kinds: fold.add(item).map(({ kind }) => kind), view: asJson(fold.view) })) };
}

const versions = await pythonsWithPackages([httpxRequirement()]);

test('the oldest and the newest Python are different ones, from 3.10 on', t => {
  if (versions.length < 2) return t.skip('one Python of 3.10 or newer is here');
  const minors = versions.map(({ version }) => Number(version.split('.')[1]));
  assert.ok(minors.every(minor => minor >= 10) && minors[0]! < minors[1]!, minors.join());
});

for (const { version, ...one } of versions) {
  test(`Python ${version}: the unit tests of packages/python pass`, {
    skip: 'skip' in one && one.skip,
    timeout: 600_000,
  }, async () => {
    const options = { cwd: PYTHON_PACKAGE, env: pythonEnv() };
    const args = ['-m', 'unittest', 'discover', '-s', 'tests', '-t', '.'];
    const { stderr } = await promisify(execFile)('python' in one ? one.python : '', args, options);
    assert.match(stderr, /^Ran [1-9]\d* tests? in /m);
  });
}

test('the Python package has the catalogue of errors', { skip }, async () => {
  await using driver = new PythonDriver(python);
  const expected = Object.entries(A2A_ERRORS).map(([code, { rpc, retryable, text }]) => [code, [rpc, retryable, text]]);
  assert.deepEqual(await driver.call('errors'), Object.fromEntries(expected));
});

test('the Python fold gives the views and changes of the TypeScript fold for every recorded stream', { skip }, async () => {
  await using driver = new PythonDriver(python);
  assert.ok(STREAMS.size > 8);
  for (const [name, items] of STREAMS)
    assert.deepEqual(await driver.call('fold', { items, continues: false }), stepsOf(items, false), name);
});

/** A stream that begins in the middle of the recording, where it continues, and loses the event at each of `gaps`. */
function cut(events: readonly RecordedEvent[], start: number, gaps: ReadonlySet<number>): ViewItem[] {
  const head: ViewItem[] = start === 0 ? [events[0]!] : [snapshotAfter(events.slice(0, start + 1))];
  return events.slice(start + 1).reduce<ViewItem[]>((items, item, index) => {
    const at = start + 1 + index;
    return items.concat(gaps.has(at) ? [{ gap: 'unknown' }, snapshotAfter(events.slice(0, at + 1))] : [item]);
  }, head);
}

const share = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });

test('the Python fold gives the same views with random cuts and gaps', { skip, timeout: 300_000 }, async () => {
  await using driver = new PythonDriver(python);
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...STREAMS.keys()),
      share,
      fc.array(share, { maxLength: 4 }),
      fc.boolean(),
      async (name, from, places, continues) => {
        const events = STREAMS.get(name)!;
        const at = (place: number) => Math.floor(place * events.length);
        const items = cut(events, continues ? at(from) : 0, new Set(places.map(at)));
        assert.deepEqual(await driver.call('fold', { items, continues }), stepsOf(items, continues));
      },
    ),
    { numRuns: 100 },
  );
});

/** Arbitrary artifacts and statuses, with names, kinds and metadata that Hopline and other servers use. */
const text = fc.string({ unit: fc.constantFrom('x', 'y', ' ', '\n', '🎯', '\ufeff', '\u0085'), maxLength: 4 });
const part = fc.oneof(
  { weight: 6, arbitrary: text.map(one => ({ text: one })) },
  fc.record({ text, mediaType: fc.constantFrom('text/html', 'Text/Markdown', 'text/plain; charset=utf-8', 'text/plainx') }),
  fc.record({ text, filename: fc.constant('a.txt') }),
  fc.constant({ data: { n: 1 } }),
);
const metadata = fc.record(
  {
    sourceAgent: fc.constantFrom('a', 'b'),
    toolCallId: fc.constantFrom('c1', 'c2'),
    tool: fc.constantFrom('forecast', 'search'),
    artifactKind: fc.constantFrom('plan', 'answer', 'call-start', 'call-end', 'progress', 'result', 'other'),
    failed: fc.boolean(),
    waiting: fc.boolean(),
    arguments: fc.constantFrom({ city: 'Oslo' }, 'text'),
    result: fc.constantFrom('done', { n: 1 }),
    usage: fc.constantFrom({ inputTokens: 1 }, { inputTokens: 1, outputTokens: 2, model: 'm' }, 'none'),
    reason: text,
  },
  { requiredKeys: [] },
);
const names = ['streaming_result', 'partial_result', 'execution_plan_update', 'tool_notification_start', 'tool_notification_end'];
const artifact = fc.record(
  {
    artifactId: fc.constantFrom('1', '2', '3', '4'),
    name: fc.constantFrom(...names, 'progress', 'response', 'report', ''),
    description: text,
    parts: fc.array(part, { maxLength: 3 }),
    metadata,
  },
  { requiredKeys: ['artifactId', 'parts'] },
);
/** Notices of servers whose calls have no ids. */
const notice = fc.record({
  artifactId: fc.constantFrom('5', '6', '7', '8'),
  name: fc.constantFrom('tool_notification_start', 'tool_notification_end'),
  parts: fc.array(part, { maxLength: 1 }),
  metadata: fc.record({ tool: fc.constantFrom('forecast', 'search', 'map') }),
});
const message = fc.record({
  messageId: fc.constantFrom('m1', 'm2', '1'),
  role: fc.constant('ROLE_AGENT' as const),
  parts: fc.array(part, { maxLength: 2 }),
  metadata,
});
const STATES = ['WORKING', 'WORKING', 'SUBMITTED', 'COMPLETED', 'FAILED', 'CANCELED', 'INPUT_REQUIRED', 'AUTH_REQUIRED'] as const;
const state = fc.constantFrom(...STATES).map(one => `TASK_STATE_${one}` as const);
const status = fc.record({ state, message }, { requiredKeys: ['state'] });
const IDS = { taskId: 't', contextId: 'c' };
const flags = { append: fc.boolean(), lastChunk: fc.boolean() };
const item: fc.Arbitrary<ViewItem> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ artifact, ...flags }).map(one => ({ event: { artifactUpdate: { ...IDS, ...one } } })) },
  {
    weight: 4,
    arbitrary: fc
      .record({ status, metadata }, { requiredKeys: ['status'] })
      .map(one => ({ event: { statusUpdate: { ...IDS, ...one } } })),
  },
  fc
    .record(
      { status, metadata, artifacts: fc.uniqueArray(artifact, { selector: one => one.artifactId }) },
      { requiredKeys: ['status'] },
    )
    .map(one => ({ event: { task: { id: 't', contextId: 'c', ...one } } })),
  { weight: 6, arbitrary: notice.map(one => ({ event: { artifactUpdate: { ...IDS, artifact: one } } })) },
  message.map(one => ({ event: { message: one } })),
  fc.constant({ gap: 'unknown' }),
);

test('the Python fold gives the same views for arbitrary events', { skip, timeout: 300_000 }, async () => {
  await using driver = new PythonDriver(python);
  const items = fc.array(item, { maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(items, fc.boolean(), async (list, continues) => {
      assert.deepEqual(await driver.call('fold', { items: list, continues }), stepsOf(list, continues));
    }),
    { numRuns: 300 },
  );
});

test('the Python client resumes over any faults of connections', { skip, timeout: 300_000 }, async () => {
  const events = STREAMS.get('agent-killed')!.map(({ event }) => event);
  await using driver = new PythonDriver(python);
  const after = fc.integer({ min: 0, max: 30 });
  const fault: fc.Arbitrary<ConnectionFault> = fc.oneof(
    fc.constant<ConnectionFault>({ kind: 'drop' }),
    fc.constant<ConnectionFault>({ kind: 'repeat' }),
    fc.constant<ConnectionFault>({ kind: 'answer', status: 503, headers: { 'retry-after': '0' } }),
    fc.record({ kind: fc.constant('cut' as const), after, halfFrame: fc.boolean() }),
    // Without an event the client requests the task, which this server does not have.
    fc.record({ kind: fc.constant('end' as const), after: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ kind: fc.constant('drain' as const), after }),
    fc.record({ kind: fc.constant('frame' as const), after, data: fc.constant('{') }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fault, { maxLength: 4 }), async faults => {
      const server = await startBadServer({ events, fault: n => faults[n] });
      try {
        const { views } = await driver.call<{ views: unknown[] }>('watch', { url: server.url, task: 'task-1' });
        const requests = server.requests.length;
        const expected = (await collect(createClient({ url: server.url }).watch('task-1'))).map(asJson);
        assert.deepEqual(views, expected);
        assert.ok(requests <= 1 + faults.length);
      } finally {
        await server.close();
      }
    }),
    { numRuns: 25 },
  );
});

/** The output of the blocks of the README on a cluster: the answer, the last view, and the answer to the question in the second block. */
async function runReadme(url: string): Promise<string[]> {
  const readme = readFileSync(join(PYTHON_PACKAGE, 'README.md'), 'utf8');
  const [quickStart, errors] = [...readme.matchAll(/^```python\n(.*?)^```$/gms)].map(([, block]) => block!);
  const body = errors!.replaceAll(/^/gm, '        ');
  const second = `async def second(url):\n    async with hopline.Client(url) as client:\n${body}\n        print("#", answer.text, sep="", end="")\n`;
  const program = `${quickStart}\n${second}\nasyncio.run(second(sys.argv[1]))\n`;
  const { stdout } = await promisify(execFile)(python, ['-c', program, url], { env: pythonEnv() });
  const [first, answer] = stdout.split('#');
  const lines = first!.split(/\n(?=TASK_STATE_)/);
  return [lines[0]!, lines.at(-1)!.trim(), answer!];
}

const TOKENS = Array.from({ length: 100 }, (_, index) => `${index} 🎯\n`);

test('the Python client asks, answers, watches and cancels on a cluster [S3-31]', { skip, timeout: 300_000 }, async t => {
  const remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text, turn }) {
      if (text.includes('fail')) return yield { fail: true, text: 'no such city' };
      if (/ask back|book a table/.test(text) && turn === 1) return yield { inputRequired: 'Which one?' };
      for (;;) {
        for (const token of TOKENS) {
          yield { token };
          yield { pause: 10 };
        }
        if (!text.includes('forever')) break;
      }
      yield { complete: true };
    },
  });
  t.after(() => remote.close());
  await using cluster = await Cluster.shared({ agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }] });
  const { url } = cluster;
  await using driver = new PythonDriver(python);
  type Answered = { text: string; state: string; taskId: string; lengths: number[] };

  let killed: Promise<unknown> | undefined;
  const kill = async () => {
    const [ingress] = cluster.ingresses;
    await Promise.all([ingress!.kill('SIGKILL'), cluster.killRelays()]);
    await Promise.all([ingress!.start(), cluster.startRelays()]);
  };
  const answered = await driver.call<Answered>('ask', { url, question: 'count', task: null }, ({ length }) => {
    if (length > 100) killed ??= kill();
  });
  assert.ok(killed !== undefined);
  await killed;
  assert.equal(answered.text, TOKENS.join(''));
  assert.equal(answered.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(
    answered.lengths,
    answered.lengths.toSorted((a, b) => a - b),
    'text was taken back',
  );
  const task = await createClient({ url }).get(answered.taskId);
  const whole = task.artifacts
    ?.filter(({ name }) => name === 'partial_result')
    .at(-1)
    ?.parts.map(one => one.text)
    .join('');
  assert.equal(whole, answered.text);

  const { question } = await driver.call<{ question: View }>('ask', { url, question: 'ask back', task: null });
  assert.equal(question.question?.text, 'Which one?');
  const second = await driver.call<Answered>('ask', { url, question: 'this one', task: question.taskId });
  assert.equal(second.text, TOKENS.join(''));
  const { views } = await driver.call<{ views: View[] }>('watch', { url, task: question.taskId });
  const expected = asJson((await collect(createClient({ url }).watch(question.taskId))).at(-1)) as View;
  assert.deepEqual(views.at(-1), expected);
  assert.equal(expected.turn, 2);

  const { failed } = await driver.call<{ failed: View }>('ask', { url, question: 'fail', task: null });
  assert.equal(failed.state, 'TASK_STATE_FAILED');

  const shown = await runReadme(url);
  assert.equal(shown[0], TOKENS.join(''));
  assert.match(shown[1]!, /^TASK_STATE_COMPLETED \d+ \['counter'\]$/);
  assert.deepEqual(shown.slice(2), [TOKENS.join('')]);

  await using other = new PythonDriver(python);
  type Canceled = { state: string; listed: string[]; unknown: unknown };
  let canceled: Promise<Canceled> | undefined;
  const stopped = await driver.call<{ failed: View }>('ask', { url, question: 'forever', task: null }, ({ length, taskId }) => {
    if (length > 0) canceled ??= other.call<Canceled>('cancel', { url, task: taskId });
  });
  const { state, listed, unknown } = await canceled!;
  assert.deepEqual(
    [state, stopped.failed.state, unknown],
    ['TASK_STATE_CANCELED', 'TASK_STATE_CANCELED', ['TASK_NOT_FOUND', -32001]],
  );
  assert.ok(listed.includes(stopped.failed.taskId));
});
