import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { approvalRequestParts, type StreamResponse, type TaskState } from '@hopline/a2a';
import { agentCard } from '@hopline/agent-card';
import { REFUSED_ORIGIN } from '../../../test/kit/refused.ts';
import { until } from '../../../test/kit/until.ts';
import { QUESTION_BYTES_MAX } from './ask/read-question.ts';
import { type Reply, startServer } from './one-task-server.test-kit.ts';
import { run } from './run.ts';
import { taskReport } from './trace/trace-report.test-kit.ts';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));
const OWN = 'npm run -s hopline --';

const ids = { taskId: 't-1', contextId: 'c-1' };
const message = (text: string) => ({ messageId: 'm', role: 'ROLE_AGENT' as const, parts: [{ text }] });
const status = (state: TaskState, text?: string): StreamResponse => ({
  statusUpdate: { ...ids, status: { state, ...(text !== undefined && { message: message(text) }) } },
});
const part = (name: string, text: string, append = false, lastChunk = false): StreamResponse => ({
  artifactUpdate: { ...ids, artifact: { artifactId: name, name, parts: [{ text }] }, append, lastChunk },
});
const task = (state: TaskState, artifacts?: { artifactId: string; name: string; parts: { text: string }[] }[]) => ({
  id: 't-1',
  contextId: 'c-1',
  status: { state },
  ...(artifacts && { artifacts }),
});
const ANSWER = [
  { task: task('TASK_STATE_SUBMITTED') },
  status('TASK_STATE_WORKING'),
  part('execution_plan_streaming', '⟦1. Guide⟧'),
  part('execution_plan_update', '⟦1. Guide⟧', false, true),
  part('tool_notification_start', '🔧 Supervisor: Calling Agent Guide...\n', false, true),
  part('streaming_result', 'Hello '),
  part('streaming_result', 'wörld', true),
  part('streaming_result', '', true, true),
  part('tool_notification_end', '✅ Supervisor: Guide completed\n', false, true),
  part('partial_result', 'Hello wörld', false, true),
];

type Options = {
  tty?: boolean;
  /** A terminal that can show a prompt. */
  prompts?: boolean;
  /** A function generates it from what has been printed. */
  stdin?: string | Uint8Array | ((out: () => string) => AsyncIterable<string>);
  environment?: Record<string, string>;
  /** Ctrl-C once this has been printed. */
  interruptAfter?: string;
  columns?: number;
};

async function hopline(replies: Record<string, Reply>, argv: string[], options: Options = {}) {
  const { prompts = false, tty = prompts, stdin = '', environment = {}, interruptAfter, columns } = options;
  await using server = await startServer(replies);
  const written = { out: '', err: '' };
  const interrupt = new AbortController();
  const write = (text: string) => {
    written.out += text;
    if (interruptAfter !== undefined && written.out.includes(interruptAfter)) setImmediate(() => interrupt.abort());
  };
  const code = await run(argv, {
    environment: { HOPLINE_URL: server.url, NO_COLOR: '1', ...environment },
    folder: CHECKOUT,
    stdin: Object.assign(Readable.from(typeof stdin === 'function' ? stdin(() => written.out) : [Buffer.from(stdin)]), {
      isTTY: tty,
    }),
    stdout: prompts ? Object.assign(collecting(write), { isTTY: true, columns }) : { isTTY: tty, columns, write },
    stderr: { isTTY: tty, write: text => (written.err += text) },
    signal: interrupt.signal,
    takeInterrupts: () => {},
  });
  return { code, ...written, requests: server.requests, url: server.url };
}

function collecting(take: (text: string) => void): Writable {
  return new Writable({
    write(chunk, _encoding, done) {
      take(String(chunk));
      done();
    },
  });
}

const streaming = (...events: StreamResponse[]) => ({ SendStreamingMessage: { events } });

test('ask writes only the answer to a pipe, and also progress to a terminal', async () => {
  const replies = streaming(...ANSWER, status('TASK_STATE_COMPLETED'));
  const piped = await hopline(replies, ['ask', 'hi', '--agent', 'guide', '--context', 'c-1']);
  assert.deepEqual([piped.code, piped.out, piped.err], [0, 'Hello wörld', '']);
  const sent = piped.requests[0]!.params.message!;
  assert.deepEqual([sent.parts, sent.metadata, sent.contextId], [[{ text: 'hi' }], { agent: 'guide' }, 'c-1']);
  const shown = await hopline(replies, ['ask', 'hi'], { tty: true });
  assert.deepEqual([shown.code, shown.out], [0, 'Hello wörld\n']);
  assert.deepEqual(shown.err.trimEnd().split('\n'), [
    'task t-1 submitted',
    'task t-1 working',
    '⟦1. Guide⟧',
    '🔧 Supervisor: Calling Agent Guide...',
    '✅ Supervisor: Guide completed',
    'task t-1 completed',
    `context c-1; continue with: ${OWN} ask --context c-1 --url ${shown.url} TEXT`,
  ]);
});

const APPROVAL = { callId: 'call-1', tool: 'refund', arguments: { order: '17' } };
const ASKS: StreamResponse = {
  statusUpdate: {
    ...ids,
    status: {
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { messageId: 'q', role: 'ROLE_AGENT', parts: approvalRequestParts(APPROVAL) },
    },
  },
};

for (const [typed, parts] of [
  ['y\n', [{ text: 'Approved' }, { data: { approvalResponse: { callId: 'call-1', approved: true } } }]],
  ['\n', [{ text: 'Refused' }, { data: { approvalResponse: { callId: 'call-1', approved: false } } }]],
  [
    'too much\n',
    [{ text: 'too much' }, { data: { approvalResponse: { callId: 'call-1', approved: false, reason: 'too much' } } }],
  ],
] as const)
  test(`ask shows a call that waits for an approval, and sends the decision ${JSON.stringify(typed)} of the terminal`, async () => {
    const replies = streaming({ task: task('TASK_STATE_WORKING') }, ASKS);
    const { code, out, err, requests } = await hopline(replies, ['ask', 'refund'], { prompts: true, stdin: typed });
    assert.match(err, /input required: Run refund with \{"order":"17"\}\?\nrefund \{\n {2}"order": "17"\n\}\n/);
    assert.match(out, /Run refund\? \[y\/N, or why not\] /);
    const [, answer] = requests.map(({ params }) => params.message!);
    assert.deepEqual([answer?.taskId, answer?.parts], ['t-1', parts]);
    // The server asks again, and the input has ended: the call waits on.
    assert.equal(requests.length, 2);
    assert.equal(code, 4);
    assert.match(err, /approve with: .* ask --task t-1 --url \S+ yes; refuse with: .* ask --task t-1 --url \S+ REASON\n$/);
  });

test('in a chat the line after a call that waits for an approval decides, as its prompt shows', { timeout: 90_000 }, async () => {
  const replies = streaming({ task: task('TASK_STATE_WORKING') }, ASKS);
  async function* stdin(printed: () => string) {
    yield 'refund\n';
    await until(() => printed().includes('(yes approves, other words refuse) > '));
    yield 'yes\n';
  }
  const { requests } = await hopline(replies, ['chat'], { prompts: true, stdin });
  const messages = requests.map(({ params }) => params.message!);
  assert.deepEqual(
    messages.map(({ taskId, parts }) => [taskId, parts]),
    [
      [undefined, [{ text: 'refund' }]],
      ['t-1', [{ text: 'yes' }]],
    ],
  );
});

test('without a terminal, ask leaves a call that waits for an approval open, and prints how to decide', async () => {
  const replies = streaming({ task: task('TASK_STATE_WORKING') }, ASKS);
  for (const argv of [
    ['ask', 'refund'],
    ['ask', 'refund', '--json'],
  ]) {
    const { code, err, requests } = await hopline(replies, argv, { stdin: 'y\n', prompts: argv.includes('--json') });
    assert.deepEqual([code, requests.length], [4, 1]);
    assert.match(err, /approve with: /);
  }
});

test('ask reads its text unchanged from standard input, up to a bound', async () => {
  const replies = streaming({ task: task('TASK_STATE_COMPLETED') });
  for (const argv of [['ask'], ['ask', '-']]) {
    const { requests } = await hopline(replies, argv, { stdin: '\uFEFF two\nlines\n' });
    assert.deepEqual(requests[0]!.params.message!.parts, [{ text: '\uFEFF two\nlines\n' }]);
  }
  const largest = await hopline(replies, ['ask'], { stdin: 'x'.repeat(QUESTION_BYTES_MAX) });
  assert.equal(largest.code, 0);
  for (const stdin of ['', ' \n\t', 'x'.repeat(QUESTION_BYTES_MAX + 1), new Uint8Array([0xff, 0xfe])]) {
    const { code, requests } = await hopline(replies, ['ask'], { stdin });
    assert.deepEqual([code, requests.length], [2, 0]);
  }
  assert.equal((await hopline(replies, ['ask'], { tty: true })).code, 2);
  for (const [text, reason] of [
    ['', 'is empty'],
    [' \n', 'has only white space'],
  ] as const) {
    const { code, err, requests } = await hopline(replies, ['ask', text], { stdin: 'x' });
    assert.deepEqual([code, err, requests.length], [2, `hopline: nothing to ask: the text ${reason}\n`, 0]);
  }
});

test('the exit code and standard error report how a task ended', async () => {
  const head: StreamResponse = { task: task('TASK_STATE_SUBMITTED') };
  const ends: [StreamResponse, number, RegExp][] = [
    [status('TASK_STATE_FAILED', 'broken'), 1, /^task t-1 failed: broken\n$/],
    [status('TASK_STATE_REJECTED'), 1, /^task t-1 rejected\n$/],
    [status('TASK_STATE_CANCELED'), 1, /^task t-1 canceled\n$/],
    [
      status('TASK_STATE_INPUT_REQUIRED', 'Which one?'),
      4,
      /^task t-1 input required: Which one\?\nreply with: npm run -s hopline -- ask --task t-1 --url http:\S+ TEXT\n$/,
    ],
  ];
  for (const [end, expected, message] of ends) {
    const { code, out, err } = await hopline(streaming(head, end), ['ask', 'hi']);
    assert.deepEqual([code, out], [expected, '']);
    assert.match(err, message);
  }
});

test('when no agent fits, ask prints the option that names one and the agents of the server', async () => {
  const failed = { ...ids, status: { state: 'TASK_STATE_FAILED' as const, message: message('no agent fits this message') } };
  const choose = { agents: ['files', 'guide', 7, '$(rm)'], option: '--agent NAME', member: 'metadata.agent' };
  const { code, err, url } = await hopline(streaming({ statusUpdate: { ...failed, metadata: { choose } } }), ['ask', 'hi']);
  const hint = `name one with: ${OWN} ask --agent files|guide --url ${url} TEXT`;
  assert.deepEqual([code, err], [1, `task t-1 failed: no agent fits this message\n${hint}\n`]);
});

test('agents prints names, states, skills, and which agent takes messages that fit no skill', async () => {
  const agents = [
    { name: 'files', description: 'Reads files', skills: [{ id: 'r', name: 'Read' }], state: 'live', default: false },
    { name: 'down', description: '', skills: [], state: 'live', fault: 'ECONNREFUSED', default: false },
    { name: 'bad', description: '', skills: [], state: 'live', failing: 'http_500', default: false },
    { name: 'guide', description: '', skills: [], state: 'silent', default: true, lastSeenAt: '2026-11-22T08:00:00.000Z' },
    { description: 'has no name' },
  ];
  const replies = { 'GET /agents': { page: JSON.stringify({ agents }) } };
  const { code, out } = await hopline(replies, ['agents']);
  assert.equal(code, 0);
  assert.match(
    out,
    /^ {2}files {2}live {2}Reads files {2}\[Read\]\n {2}down {3}live, does not answer \(ECONNREFUSED\)\n {2}bad {4}live, its last turns failed \(http_500\)\n\* guide {2}silent, seen \d+ \w+ ago\n$/,
  );
  const json = await hopline(replies, ['agents', '--json'], { environment: { HOPLINE_TOKEN: 'abc' } });
  assert.deepEqual(
    json.out
      .trim()
      .split('\n')
      .map(line => JSON.parse(line)),
    agents.slice(0, 4),
  );
  assert.equal(json.requests[0]!.headers.authorization, 'Bearer abc');
  const other = await hopline({}, ['agents']);
  assert.deepEqual(
    [other.code, other.err],
    [1, 'hopline: This operation is not supported: the server does not list its agents\n'],
  );
  const none = await hopline({ 'GET /agents': { page: '{"agents":[]}' } }, ['agents']);
  assert.match(none.err, /^the server has no agents: add one with: npm run -s hopline -- agent FILE\n$/);
  assert.equal((await hopline({ 'GET /agents': { page: '[]' } }, ['agents'])).code, 1);
});

test('trace prints the audit of the server; the exit code is 1 when an input is unaccounted for', async () => {
  const tallies = { text: { received: 3, accepted: 3, duplicates: 0, pending: 0, rejected: {} } };
  const audit = { tallies, chunks: 2, mergedTokens: 1, unaccounted: { text: 0 }, differing: [], incomplete: false };
  const trace = taskReport(2, { taskId: 't-1' });
  const page = (changed: object) => ({
    'GET /tasks/t-1/audit': { page: JSON.stringify({ ...trace, audit: { ...audit, ...changed } }) },
  });
  const balanced = await hopline(page({}), ['trace', 't-1']);
  assert.deepEqual([balanced.code, balanced.err], [0, '']);
  const slowest = 'slowest: redelivery argocd, [^\n]*\naudit: all text is complete and unchanged\n--all prints [^\n]*\n$';
  assert.match(balanced.out, new RegExp(`^task t-1 completed, 4 events[\\s\\S]*\n${slowest}`));
  const { out } = await hopline(page({}), ['trace', 't-1', '--all']);
  assert.match(
    out,
    /^task t-1 completed, 4 events[\s\S]*text: 3 in, 3 accepted, 2 chunks out, 1 merged\n {2}all text is complete/,
  );
  const lost = await hopline(page({ unaccounted: { text: 2 } }), ['trace', 't-1', '--json']);
  assert.deepEqual([lost.code, JSON.parse(lost.out).audit.unaccounted], [1, { text: 2 }]);
  for (const body of ['{}', 'null', '{"audit":{}}']) {
    const { code, err } = await hopline({ 'GET /tasks/t-1/audit': { page: body } }, ['trace', 't-1']);
    assert.equal(code, 1);
    assert.match(err, /^hopline: Invalid agent response: /);
  }
});

test('--version prints only the version', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  for (const option of ['--version', '-v']) assert.deepEqual((await hopline({}, [option])).out, `${version}\n`);
});

test('tasks breaks lines between fields on a narrow terminal, never within a field that fits', async () => {
  const listed = {
    ...task('TASK_STATE_FAILED'),
    id: '01a2023a-26f7-74dd-bed2-287701515e8f',
    status: { state: 'TASK_STATE_FAILED', timestamp: '2026-11-22T07:48:16.943Z', message: message('broken') },
    history: [{ ...message('one two three four five six seven eight nine'), role: 'ROLE_USER', metadata: { agent: 'guide' } }],
  };
  const { out } = await hopline({ ListTasks: { result: { tasks: [listed] } } }, ['tasks'], { tty: true, columns: 40 });
  const lines = out.trimEnd().split('\n');
  assert.ok(
    lines.every(line => line.length <= 40),
    out,
  );
  assert.match(
    out,
    /^01a2023a-26f7-74dd-bed2-287701515e8f\n {2}2026-11-22 \d\d:\d\d:16 {2}failed\n {2}1\.7 s {2}guide +c-1\n {2}"one two/,
  );
});

test('an answer in the last status, or in a direct message, is printed', async () => {
  for (const events of [[status('TASK_STATE_COMPLETED', 'Done.')], [{ message: message('Done.') }]]) {
    const { code, out } = await hopline(streaming(...events), ['ask', 'hi']);
    assert.deepEqual([code, out], [0, 'Done.']);
  }
});

test('a reply to a task prints only the new part of the answer', async () => {
  const before = [{ artifactId: 'old', name: 'streaming_result', parts: [{ text: 'old' }] }];
  const replies = streaming(
    { task: task('TASK_STATE_WORKING', before) },
    part('streaming_result', 'new'),
    status('TASK_STATE_COMPLETED'),
  );
  const { code, out, requests } = await hopline(replies, ['ask', 'this one', '--task', 't-1']);
  assert.deepEqual([code, out, requests[0]!.params.message!.taskId], [0, 'new', 't-1']);
});

test('--json prints each event with its cursor on a separate line', async () => {
  const events = [...ANSWER, status('TASK_STATE_COMPLETED')];
  const { code, out } = await hopline(streaming(...events), ['ask', 'hi', '--json'], { tty: true });
  const expected = events.map((event, index) => ({ cursor: `${index + 1}.${index + 11}`, event }));
  assert.deepEqual(
    out
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line)),
    JSON.parse(JSON.stringify(expected)),
  );
  assert.equal(code, 0);
});

test('follow starts at the beginning or after a cursor, and exits with the code of the task after the last event', async () => {
  const whole = await hopline({ SubscribeToTask: { events: [...ANSWER, status('TASK_STATE_COMPLETED')] } }, ['follow', 't-1']);
  assert.deepEqual([whole.code, whole.out, whole.requests[0]!.headers['last-event-id']], [0, 'Hello wörld', '0.0']);
  const rest: Record<string, Reply> = { SubscribeToTask: { events: [] }, GetTask: { result: task('TASK_STATE_FAILED') } };
  const ended = await hopline(rest, ['follow', 't-1', '--cursor', '9.9']);
  assert.deepEqual([ended.code, ended.out, ended.requests[0]!.headers['last-event-id']], [1, '', '9.9']);
});

test('an interrupted ask prints the command that continues it, and does not cancel the task', async () => {
  const { code, out, err, requests, url } = await hopline(
    { SendStreamingMessage: { events: ANSWER.slice(0, 6), open: true } },
    ['ask', 'hi'],
    { interruptAfter: 'Hello ' },
  );
  assert.deepEqual([code, out, requests.length], [130, 'Hello ', 1]);
  assert.equal(err, `the task continues: ${OWN} follow t-1 --cursor 6.16 --url ${url}\n`);
});

test('get, cancel and card print text and JSON', async () => {
  const artifacts = [
    { artifactId: 'a', name: 'streaming_result', parts: [{ text: 'Hello' }] },
    { artifactId: 'b', name: 'partial_result', parts: [{ text: 'Hello' }] },
  ];
  const done = task('TASK_STATE_COMPLETED', artifacts);
  const got = await hopline({ GetTask: { result: done } }, ['get', 't-1']);
  assert.deepEqual([got.code, got.out, got.err], [0, 'Hello', '']);
  const json = await hopline({ GetTask: { result: done } }, ['get', 't-1', '--json']);
  assert.deepEqual(JSON.parse(json.out), done);
  const canceled = await hopline({ CancelTask: { result: task('TASK_STATE_CANCELED') } }, ['cancel', 't-1']);
  assert.deepEqual([canceled.code, canceled.out], [0, '']);
  const late = await hopline({ CancelTask: { result: task('TASK_STATE_WORKING') } }, ['cancel', 't-1']);
  assert.deepEqual([late.code, late.err], [1, 'task t-1 is not canceled yet: its agent has not stopped\n']);
  const long = `Reads a file${' of the file system'.repeat(9)}. Handles encodings.`;
  const skills = [
    { id: 'guide', name: 'Guide', description: 'explains', tags: ['a', 'b'] },
    { id: 'list', name: 'List', description: 'Lists v1.2 of a folder. Use it\nwhen needed.', tags: [] },
    { id: 'read', name: 'Read', description: long, tags: [] },
  ];
  const page = JSON.stringify(
    agentCard({
      name: 'Hop',
      description: 'relays',
      version: '1',
      url: 'http://hop/',
      skills,
      capabilities: { streaming: true },
    }),
  );
  const card = await hopline({ 'GET /.well-known/agent-card.json': { page } }, ['card']);
  const [name, address, guide, list, read] = card.out.split('\n');
  assert.deepEqual([name, address, guide], ['Hop: relays', 'http://hop/ (A2A 1.0, streaming)', '  guide: explains [a, b]']);
  assert.equal(list, '  list: Lists v1.2 of a folder.');
  assert.match(read!, /^ {2}read: Reads a file of the .{50,80}…$/);
  assert.deepEqual(card.out.split('\n').slice(5), [
    '2 findings about the card:',
    '  skills[1].tags is empty.',
    '  skills[2].tags is empty.',
    '',
  ]);
  const plain = JSON.stringify(
    agentCard({ name: 'Hop', description: 'd', version: '1', url: 'http://hop/', skills: [], capabilities: {} }),
  );
  const fine = await hopline({ 'GET /.well-known/agent-card.json': { page: plain } }, ['card']);
  assert.match(fine.out, /\nno findings: the card follows A2A\n$/);
});

test('a rejected request exits with 1 and an unreachable server with 3, both without a stack trace', async () => {
  const error = { code: -32001, message: 'Task not found' };
  for (const argv of [
    ['get', 'x'],
    ['follow', 'x'],
    ['cancel', 'x'],
  ]) {
    const methods = { GetTask: { error }, SubscribeToTask: { error }, CancelTask: { error } };
    const { code, err } = await hopline(methods, argv);
    assert.equal(code, 1);
    assert.match(err, /^hopline: Task not found\nYour tasks: .*hopline -- tasks --url \S+\n$/);
  }
  const page = await hopline({ GetTask: { error: { code: -32601, message: 'Method not found' } } }, ['get', 'x']);
  assert.match(page.err, /^hopline: Method not found\nIs --url the address for A2A clients\? /);
  const { code, err } = await hopline({}, ['get', 'x', '--url', REFUSED_ORIGIN]);
  assert.deepEqual(
    [code, err],
    [
      3,
      `hopline: Temporarily unavailable: ${REFUSED_ORIGIN}/ cannot be reached (ECONNREFUSED)\nStart a cluster with: npm start\n`,
    ],
  );
  const remote = await hopline({}, ['get', 'x', '--url', 'http://hopline.invalid/']);
  assert.match(remote.err, /cannot be reached.*\nIs the server running\? --url or HOPLINE_URL names another one\.\n$/);
});

test('a command that reaches no server names the running local cluster', async t => {
  const home = mkdtempSync(join(tmpdir(), 'hopline-home-'));
  t.after(() => rmSync(home, { recursive: true }));
  const url = 'http://127.0.0.1:18100/';
  writeFileSync(join(home, 'run.json'), JSON.stringify({ url, nats: 'nats://127.0.0.1:1', processes: [] }));
  const { err } = await hopline({}, ['get', 'x', '--url', REFUSED_ORIGIN], { environment: { HOPLINE_HOME: home } });
  assert.match(err, /ECONNREFUSED\)\nThe local cluster has another address: set HOPLINE_URL=http:\/\/127\.0\.0\.1:18100\/\n$/);
});

test('HOPLINE_TOKEN is sent as a bearer token, HOPLINE_API_KEY as a key; an invalid one is a usage error that hides it', async () => {
  const replies = { GetTask: { result: task('TASK_STATE_COMPLETED') } };
  const { requests } = await hopline(replies, ['get', 't-1'], { environment: { HOPLINE_TOKEN: 'abc' } });
  assert.equal(requests[0]!.headers.authorization, 'Bearer abc');
  const both = await hopline(replies, ['get', 't-1'], { environment: { HOPLINE_API_KEY: 'key', HOPLINE_TOKEN: '' } });
  const { authorization, 'x-api-key': key } = both.requests[0]!.headers;
  assert.deepEqual([authorization, key], [undefined, 'key']);
  const named = { HOPLINE_API_KEY: 'key', HOPLINE_AUTH_API_KEY_HEADER: 'x-our-key' };
  const { headers } = (await hopline(replies, ['get', 't-1'], { environment: named })).requests[0]!;
  assert.deepEqual([headers['x-our-key'], headers['x-api-key']], ['key', undefined]);
  const odd = await hopline(replies, ['get', 't-1'], { environment: { ...named, HOPLINE_AUTH_API_KEY_HEADER: 'a b' } });
  assert.deepEqual([odd.code, odd.err], [2, 'hopline: HOPLINE_AUTH_API_KEY_HEADER must be the name of a header\n']);
  for (const name of ['HOPLINE_TOKEN', 'HOPLINE_API_KEY']) {
    const { code, err } = await hopline(replies, ['get', 't-1'], { environment: { [name]: 'secret\n' } });
    assert.deepEqual([code, err], [2, `hopline: ${name} contains characters that are not allowed in a header\n`]);
  }
});

test('a request without valid credentials prints how to set them, and never the rejected ones', async () => {
  const error = {
    code: -32600,
    message: 'Authentication required: the credentials are not valid',
    data: [{ reason: 'UNAUTHENTICATED' }],
  };
  const { code, out, err } = await hopline({ GetTask: { error } }, ['get', 't-1'], { environment: { HOPLINE_TOKEN: 'SECRET' } });
  assert.deepEqual([code, out], [1, '']);
  assert.match(err, /^hopline: Authentication required: the credentials are not valid\n.*set HOPLINE_TOKEN/);
  assert.doesNotMatch(err, /SECRET/);
});

test('agent reports a missing file or cluster before it starts a process', async () => {
  const noFile = await hopline({}, ['agent', './nowhere.ts']);
  assert.deepEqual([noFile.code, noFile.err], [2, 'hopline: file ./nowhere.ts does not exist\n']);
  const noCluster = await hopline({}, ['agent', import.meta.filename], { environment: { HOPLINE_HOME: '/nowhere' } });
  assert.equal(noCluster.code, 2);
  assert.match(noCluster.err, /no local cluster is running/);
});

test('an agent that cannot start prints the reason instead of log lines', { timeout: 90_000 }, async () => {
  const { code, err, out } = await hopline({}, ['agent', `${import.meta.dirname}/command/exit-code.ts`, '--export', 'missing'], {
    environment: { NATS_URL: 'nats://127.0.0.1:1' },
  });
  assert.deepEqual([code, out], [1, '']);
  assert.match(err, /^sub-agent: .*exit-code\.ts does not export missing; .*\n$/);
});

test('an --out folder that cannot be created is a usage error, before anything is sent', async () => {
  const { code, err, requests } = await hopline({}, ['get', 't-1', '--out', `${import.meta.filename}/files`]);
  assert.deepEqual([code, requests.length], [2, 0]);
  assert.match(err, /^hopline: --out .*: the folder cannot be created \(ENOTDIR\)\n$/);
});
