import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DIALECTS, Fold, type StreamResponse, type Task } from '@hopline/a2a';
import { pythonWith } from '../support/agents/python-agent.ts';
import { answer, type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** The last token ends lines in Python, but not in an event stream. */
const TOKENS = ['Grüße ', 'ha', 'ha', ' 👩‍🚀', '  done ✅', '\u0085\u2028\u2029.'];
const CLIENT_MS_MAX = 60_000;
const HOOK = 'https://hooks.example.org/';

/** The output of a client, in the form of its version. */
type Report = Record<'sent' | 'read' | 'canceled', Record<string, unknown>> & {
  card: string;
  streamed: Record<string, unknown>[];
  followed: Record<string, unknown>[];
  set: Record<string, unknown>;
  named: Record<string, unknown>;
  configs?: Record<string, unknown>[];
  tasks?: Record<string, unknown>[];
  missing: string;
  again: string;
};

const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const;
type Binding = (typeof BINDINGS)[number];

const python1 = pythonWith('1', ['grpc']);
const python03 = pythonWith('0.3', []);

let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  if (python1 === undefined && python03 === undefined) return;
  const script = ({ text }: { text: string }) => (text === 'ask' ? [{ inputRequired: 'Which one?' }] : answer(TOKENS));
  remote = await startRemoteAgent({ dialect: '0.3', script });
  const agents = [{ name: 'greeter', adapter: 'a2a', url: remote.url }];
  cluster = await Cluster.shared({ agents, balanced: true, env: { HOPLINE_PUSH: 'true' } });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

async function reportOf(python: string, script: string, ...args: string[]): Promise<Report> {
  const path = fileURLToPath(new URL(`python/${script}`, import.meta.url));
  const { stdout } = await promisify(execFile)(python, [path, cluster.url, ...args], { timeout: CLIENT_MS_MAX });
  return JSON.parse(stdout) as Report;
}

function eventsOf(dialect: '1.0' | '0.3', results: Record<string, unknown>[]): StreamResponse[] {
  return results.map(result => {
    const decoded = DIALECTS[dialect].decodeEvent(result);
    assert('event' in decoded);
    return decoded.event;
  });
}

function stateOf(event: StreamResponse | undefined): string | undefined {
  if (event !== undefined && 'task' in event) return event.task.status.state;
  return event !== undefined && 'statusUpdate' in event ? event.statusUpdate.status.state : undefined;
}

/** Assertions common to all clients; returns the id of the canceled task. */
function assertUsed(dialect: '1.0' | '0.3', report: Report): string {
  const taskOf = (value: Record<string, unknown>): Task => {
    const [event] = eventsOf(dialect, [dialect === '1.0' ? { task: value } : value]);
    assert(event !== undefined && 'task' in event);
    return event.task;
  };
  assert.equal(report.card, 'Hopline');
  const sent = taskOf(report.sent);
  assert.deepEqual([sent.status.state, sent.status.message?.parts[0]?.text], ['TASK_STATE_INPUT_REQUIRED', 'Which one?']);
  const streamed = eventsOf(dialect, report.streamed);
  const fold = new Fold();
  for (const event of streamed) fold.add(event);
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('streaming_result'), TOKENS.join(''));
  assert.equal(stateOf(streamed.at(-1)), 'TASK_STATE_COMPLETED');
  const read = taskOf(report.read);
  assert.deepEqual([read.id, read.status.state, read.history?.length], [sent.id, 'TASK_STATE_COMPLETED', 1]);
  const canceled = taskOf(report.canceled);
  assert.equal(canceled.status.state, 'TASK_STATE_CANCELED');
  const followed = eventsOf(dialect, report.followed);
  assert.deepEqual(
    [followed[0], followed.at(-1)].map(stateOf),
    ['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_CANCELED'],
    'subscribe and cancel reached different replicas',
  );
  return canceled.id;
}

/** Removes empty strings, which a Protocol Buffers parser does not distinguish from absent ones. */
const withoutEmpty = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_name, member) => (member === '' ? undefined : member));

const skip1 = python1 === undefined && 'no Python with a2a-sdk[grpc] 1 (A2A_PYTHON_1)';

function usesSdk1(binding: Binding, version: '1.0' | '0.3'): void {
  test('card, send, stream, get, follow, cancel, webhooks and lists [S3-22]', { skip: skip1 }, async () => {
    const report = await reportOf(python1!, 'client_1.py', binding, version);
    const id = assertUsed('1.0', report);
    const expected = { id, taskId: id, url: HOOK, authentication: { scheme: 'Bearer' } };
    assert.deepEqual([report.set, report.named].map(withoutEmpty), [expected, expected]);
    if (version === '1.0') {
      assert.deepEqual(report.configs?.map(withoutEmpty), [expected]);
      assert.deepEqual(
        report.tasks?.map(task => task.id),
        [id, report.sent.id],
      );
    }
    assert.deepEqual([report.missing, report.again], ['TaskNotFoundError', 'TaskNotCancelableError']);
  });
}

for (const version of ['1.0', '0.3'] as const) {
  for (const binding of BINDINGS) {
    suite(`a2a-sdk 1 of Python over ${binding} of ${version}`, () => usesSdk1(binding, version));
  }
}

/** Errors of the 0.3 client for an unknown and for an ended task. */
const ERRORS: Readonly<Record<Binding, [string, string]>> = {
  JSONRPC: ['-32001', '-32002'],
  'HTTP+JSON': ['404', '400'],
  GRPC: ['NOT_FOUND', 'FAILED_PRECONDITION'],
};

function usesSdk03(binding: Binding): void {
  const python = binding === 'GRPC' ? pythonWith('0.3', ['grpc']) : python03;
  const skip = python === undefined && `no Python with a2a-sdk 0.3 (A2A_PYTHON_0_3)${binding === 'GRPC' ? ' and grpc' : ''}`;
  test('its strict parser reads all responses [S3-22]', { skip }, async () => {
    const report = await reportOf(python!, 'client_0_3.py', binding);
    const id = assertUsed('0.3', report);
    const pushNotificationConfig = { id, url: HOOK, authentication: { schemes: ['Bearer'] } };
    const expected = { taskId: id, pushNotificationConfig };
    assert.deepEqual([report.set, report.named].map(withoutEmpty), [expected, expected]);
    assert.deepEqual([report.missing, report.again], ERRORS[binding]);
  });
}

for (const binding of BINDINGS) suite(`a2a-sdk 0.3 of Python over ${binding}`, () => usesSdk03(binding));
