import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { type Finished, HoplineCommand } from '../../support/cluster/hopline-command.ts';
import { COMMAND_SOURCE } from '../../support/cluster/service-process.ts';

const WORDS = [
  'Here',
  ' is',
  ' ',
  '\n',
  '\n\n',
  'ha',
  'ha',
  ' **Argo**',
  'CD ✅ done',
  ' 👩‍👩‍👧',
  'é',
  '\t',
  '\u001b[1mbold',
  ' ',
];
const TOKENS = Array.from({ length: 8 }, () => WORDS).flat();
const ANSWER = TOKENS.join('');

/** Releases the agent, which waits for the test in the middle of its task. */
const isReleased = Promise.withResolvers<void>();
let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text, turn }) {
      if (text.includes('fail')) return yield { fail: true, text: 'no cheese' };
      if (text.includes('ask back') && turn === 1) return yield { inputRequired: 'Which one?' };
      if (text.includes('wait for the test')) {
        yield { token: 'first' };
        await isReleased.promise;
      }
      for (const token of TOKENS) {
        yield { token };
        yield { pause: text.includes('slow') ? 20 : 1 };
      }
      yield { complete: true };
    },
  });
  cluster = await Cluster.shared({ agents: [{ name: 'argocd', adapter: 'a2a', url: remote.url }] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

const start = (argv: readonly string[], input?: string) => new HoplineCommand(cluster.url, argv, input);
/** A command whose hint the test reads. */
const startFromSource = (argv: readonly string[]) => new HoplineCommand(cluster.url, argv, '', {}, COMMAND_SOURCE);
const hopline = (argv: readonly string[], input?: string): Promise<Finished> => start(argv, input).finished;
const lines = (out: string) =>
  out
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line));
const restart = async () => {
  const [ingress] = cluster.ingresses;
  await ingress!.kill('SIGKILL');
  await ingress!.start();
};

test('ask pipes the answer, byte for byte, and nothing else', { timeout: 120_000 }, async () => {
  assert.deepEqual(await hopline(['ask', 'go', '--agent', 'argocd']), { code: 0, out: ANSWER, err: '' });
  assert.deepEqual(await hopline(['ask', '-'], 'go\n'), { code: 0, out: ANSWER, err: '' });
  assert.equal(remote.requests.at(-1)!.text, 'go\n');
});

test('ask streams the answer, and continues after a kill of the ingress', { timeout: 120_000 }, async () => {
  const command = start(['ask', 'slow']);
  await command.printed(20);
  assert.ok(command.out.length < ANSWER.length);
  await restart();
  const { code, out, err } = await command.finished;
  assert.deepEqual({ code, out }, { code: 0, out: ANSWER });
  // On a busy machine, ingress needs longer to start than the command waits before its first retry.
  assert.match(err, /^(\(Temporarily unavailable: .*; retrying in .*\)\n)*$/);
});

test('Ctrl-C leaves the task running; the printed command continues at its cursor, after a kill of the ingress', {
  timeout: 120_000,
}, async () => {
  const command = startFromSource(['ask', 'slow']);
  await command.printed(20);
  command.kill('SIGINT');
  const { code, out, err } = await command.finished;
  assert.equal(code, 130);
  const [, taskId, cursor] =
    /^the task continues: npm .*run -s hopline -- follow (\S+) --cursor (\S+) --url \S+\n$/.exec(err) ?? assert.fail(err);
  const rest = start(['follow', taskId!, '--cursor', cursor!]);
  await rest.printed(20);
  await restart();
  const followed = await rest.finished;
  assert.deepEqual([followed.code, out + followed.out], [0, ANSWER]);
  assert.ok(remote.requests.every(request => request.method !== 'cancel'));
  const again = await hopline(['follow', taskId!]);
  assert.deepEqual([again.code, again.out], [0, ANSWER]);
  const got = await hopline(['get', taskId!]);
  assert.deepEqual([got.code, got.out], [0, ANSWER]);
});

test('a closed stdout is detected, and the task continues', { timeout: 120_000 }, async () => {
  const command = start(['ask', 'slow']);
  await command.printed(20);
  command.closeOutput();
  assert.equal((await command.finished).code, 130);
});

test('cancel ends the task, and with it the commands that follow the task', { timeout: 120_000 }, async () => {
  const command = start(['ask', 'slow', '--json']);
  await command.printed(200);
  const { task } = JSON.parse(command.out.split('\n')[0]!).event;
  assert.deepEqual(await hopline(['cancel', task.id]), { code: 0, out: '', err: '' });
  const { code, out } = await command.finished;
  const list = lines(out);
  assert.deepEqual([code, list.at(-1).event.statusUpdate.status.state], [1, 'TASK_STATE_CANCELED']);
  assert.deepEqual(
    list.map(({ cursor }) => Number(cursor.split('.')[0])),
    list.map((_item, index) => index + 1),
  );
  const again = await hopline(['cancel', task.id]);
  assert.deepEqual([again.code, again.err], [1, 'hopline: Task cannot be canceled: it has ended\n']);
});

test('a failure and a question have distinct exit codes, and the question can be answered', { timeout: 120_000 }, async () => {
  const failed = await hopline(['ask', 'fail']);
  assert.deepEqual([failed.code, failed.out], [1, '']);
  assert.match(failed.err, /^task \S+ failed: .*no cheese/);
  const asked = await startFromSource(['ask', 'ask back']).finished;
  assert.deepEqual([asked.code, asked.out], [4, '']);
  const taskId = /reply with: npm .*run -s hopline -- ask --task (\S+)/.exec(asked.err)?.[1] ?? assert.fail(asked.err);
  assert.deepEqual(await hopline(['ask', 'this one', '--task', taskId]), { code: 0, out: ANSWER, err: '' });
});

test('list prints tasks over several pages, by context and by state', { timeout: 120_000 }, async () => {
  const contextId = crypto.randomUUID();
  for (const text of ['go', 'fail', 'ask back']) await hopline(['ask', text, '--context', contextId]);
  const listed = await hopline(['list', '--context', contextId]);
  assert.deepEqual(
    listed.out
      .trimEnd()
      .split('\n')
      .map(line => line.split('  ')[2]),
    ['input-required', 'failed', 'completed'],
  );
  const newest = lines((await hopline(['list', '--context', contextId, '--limit', '2', '--json'])).out);
  assert.deepEqual(
    newest.map(task => task.status.state),
    ['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_FAILED'],
  );
  const failed = await hopline(['list', '--context', contextId, '--state', 'failed']);
  assert.match(failed.out, /^\S+ {2}\S+ \S+ {2}failed {2}.*"fail" {2}\(.*no cheese.*\)\n$/);
  assert.deepEqual(await hopline(['list', '--context', 'none-such']), { code: 0, out: '', err: '' });
  const chosen = async (...filters: string[]) => (await hopline(['tasks', '--context', contextId, ...filters])).out;
  assert.equal(await chosen('--text', 'NO cheese'), failed.out);
  assert.equal(await chosen('--text', 'nothing of the kind'), '');
  assert.equal(await chosen('--longer', '1h'), '');
  assert.equal(await chosen('--longer', '0ms'), listed.out);
});

test('trace prints the inputs of each agent, the events that clients received, and the audit [S2-41 S2-30]', {
  timeout: 120_000,
}, async () => {
  const asked = lines((await hopline(['ask', 'go', '--json'])).out);
  const { id } = asked[0].event.task;
  const characters = [...ANSWER].length;
  // The server and the log return the same.
  for (const from of [[], ['--nats']]) {
    const trace = (...argv: string[]) =>
      new HoplineCommand(cluster.url, ['trace', ...from, ...argv], '', { NATS_URL: cluster.nats.url }).finished;
    const printed = await trace(id, '--all');
    assert.deepEqual([printed.code, printed.err], [0, '']);
    assert.match(printed.out, new RegExp(`^task ${id} completed, ${asked.length} events`));
    assert.match(
      printed.out,
      new RegExp(`argocd \\(call-1-1\\), turn 1, attempt 1: ${TOKENS.length} tokens, ${characters} characters`),
    );
    assert.match(printed.out, /all text is complete and unchanged/);
    assert.ok(!printed.out.includes('Here') && !printed.out.includes('Argo'), 'no text');
    for (const hop of ['accept', 'work_queue supervisor', 'plan argocd', 'agent_queue argocd', 'agent argocd', 'text argocd'])
      assert.match(printed.out, new RegExp(`^\\d\\d:\\d\\d:\\d\\d\\.\\d{3}  +${hop} +\\|`, 'm'));
    const json = lines((await trace(id, '--json')).out)[0];
    assert.deepEqual([json.events.length, json.audit.unaccounted.text], [asked.length, 0]);
    const unknown = await trace('no-such-task');
    assert.equal(unknown.code, 1);
    assert.match(unknown.err, /^hopline: Task not found\nYour tasks: .* tasks(?: --url \S+)?\n$/);
  }
});

test('why explains an event by its cursor, from the server and from the log alike [S2-41]', { timeout: 120_000 }, async () => {
  const asked = lines((await hopline(['ask', 'go', '--json'])).out);
  const { id } = asked[0].event.task;
  const { cursor } = asked.find(({ event }) => event.artifactUpdate?.artifact.name === 'streaming_result');
  const why = (...argv: string[]) =>
    new HoplineCommand(cluster.url, ['why', ...argv], '', { NATS_URL: cluster.nats.url }).finished;
  const printed = await why(id, cursor);
  assert.deepEqual([printed.code, printed.err], [0, '']);
  assert.match(printed.out, /producer argocd \(call-1-1\), turn 1, attempt 1\n {2}made of \d+ records? of inputs:/);
  assert.match(printed.out, /folded by relay relay-[12]-[0-9a-f]{8}/);
  assert.ok(!printed.out.includes('Here'), 'no text');
  assert.deepEqual(lines((await why(id, cursor, '--json')).out), lines((await why(id, cursor, '--json', '--nats')).out));
  for (const from of [[], ['--nats']]) {
    const absent = await why(id, '9999.1', ...from);
    assert.equal(absent.code, 1);
    assert.match(absent.err, /the task has no event of generation 9999/);
  }
  assert.equal((await why(id, 'x')).code, 2);
});

test('trace --follow prints the events of a running task as they arrive, then its trace', { timeout: 120_000 }, async () => {
  const asking = start(['ask', 'wait for the test', '--json']);
  await asking.shows('streaming_result');
  const following = start(['trace', lines(asking.out)[0].event.task.id, '--follow']);
  await following.shows('streaming_result');
  isReleased.resolve();
  const followed = await following.finished;
  assert.equal(followed.code, 0);
  const [events = '', whole = ''] = followed.out.split(/(?=^task )/m);
  assert.match(events, /^ +1 +\S+ s {2}task/);
  assert.match(whole, /^task \S+ completed/);
  await asking.finished;
});

test('card and get print JSON; usage errors and an absent server have distinct exit codes', { timeout: 180_000 }, async () => {
  const [card] = lines((await hopline(['card', '--json'])).out);
  assert.ok(card.supportedInterfaces.length > 0);
  const shown = await hopline(['card']);
  assert.ok(shown.out.startsWith(`${card.name}: `));
  assert.equal((await hopline(['ask'])).code, 2);
  assert.equal((await hopline(['get', 'no-such-task'])).code, 1);
  const absent = await startFromSource(['get', 'x', '--url', 'http://127.0.0.1:9/']).finished;
  assert.equal(absent.code, 3);
  assert.match(
    absent.err,
    /^hopline: Temporarily unavailable: http:\/\/127\.0\.0\.1:9\/ cannot be reached\nStart a cluster with: npm /,
  );
});

test('rerun sends the messages of a task again as a new one that refers to it, answers included', async () => {
  const asked = await hopline(['ask', 'ask back']);
  const [origin] = /[0-9a-f-]{36}/.exec(asked.err.slice(asked.err.indexOf('--task'))) ?? [];
  const answered = await hopline(['ask', '--task', origin!, 'that one']);
  assert.deepEqual([asked.code, answered.code, answered.out], [4, 0, ANSWER]);

  const refused = await hopline(['rerun', origin!]);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /runs the agents again.*--yes/);

  const again = await hopline(['rerun', origin!, '--yes']);
  assert.deepEqual([again.code, again.out], [0, ANSWER]);
  const [, taskId] = /again as (\S+): completed\n/.exec(again.err) ?? [];
  const task = JSON.parse((await hopline(['get', taskId!, '--json'])).out);
  const sent = task.history.filter(({ role }: { role: string }) => role === 'ROLE_USER');
  assert.deepEqual(
    sent.map(({ parts, referenceTaskIds }: { parts: { text: string }[]; referenceTaskIds: string[] }) => [
      parts[0]!.text,
      referenceTaskIds,
    ]),
    [
      ['ask back', [origin]],
      ['that one', [origin]],
    ],
  );

  const second = await hopline(['rerun', origin!, '--yes', '--from-turn', '2']);
  assert.deepEqual([second.code, second.out], [0, ANSWER]);
  const none = await hopline(['rerun', origin!, '--yes', '--from-turn', '3']);
  assert.deepEqual([none.code, none.err], [2, `hopline: ${origin} has no message 3\n`]);
});

test('rerun compares the tasks of a file with their new runs; an unreadable task does not affect the others', async () => {
  const [plain, failing] = ['hello', 'please fail'].map(text => hopline(['ask', '--json', text]));
  const ids = [await plain, await failing].map(one => (lines(one!.out)[0] as { event: { task: { id: string } } }).event.task.id);
  const folder = await mkdtemp(join(tmpdir(), 'hopline-rerun-'));
  try {
    const file = join(folder, 'tasks.txt');
    await writeFile(file, `# of last week\n${ids.join('\n')}\n\n01a203c7-0000-7000-8000-000000000000\n`);
    const found = await hopline(['rerun', '--file', file, '--compare', '--yes']);
    assert.equal(found.code, 1);
    assert.match(found.out, new RegExp(`${ids[0]} again as \\S+: completed, same; `));
    assert.match(found.out, new RegExp(`${ids[1]} again as \\S+: failed, same; `));
    assert.match(found.out, /\n3 tasks: 1 same, 0 differ, 2 not completed\n$/);
    const both = await hopline(['rerun', ids[0]!, '--agent', 'none-such', '--compare', '--yes']);
    assert.equal(both.code, 1);
    assert.match(both.out, /\n {2}\S.*: (differs from character \d+\n {4}A ".*\n {4}B "|only in [AB]: )/);
    assert.match(both.out, /\n1 task: 0 same, 1 differ, 1 not completed\n$/);
    await writeFile(file, 'no task id\n');
    const invalid = await hopline(['rerun', '--file', file, '--yes']);
    assert.deepEqual([invalid.code, invalid.err], [2, `hopline: ${file}, line 1: not a task id\n`]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('agent runs in the local cluster, and its hint names the server of that cluster', { timeout: 120_000 }, async () => {
  const home = await mkdtemp(join(tmpdir(), 'hopline-home-'));
  const processes = [{ service: 'nats', instance: 'nats-1', pid: 1, url: cluster.nats.url, restarts: 0 }];
  const run = { url: cluster.url, nats: cluster.nats.url, logs: home, processes };
  await writeFile(join(home, 'run.json'), JSON.stringify(run));
  const dice = fileURLToPath(new URL('../../../infra/examples/hand-written/dice.ts', import.meta.url));
  const agent = new HoplineCommand('', ['agent', dice], null, { HOPLINE_HOME: home });
  try {
    await agent.shows(`ask --agent dice --url ${cluster.url} TEXT\n`);
    const thrown = await hopline(['ask', '--agent', 'dice', '2 dice']);
    assert.match(thrown.out, /^([1-6] ){2}\n/);
  } finally {
    agent.kill('SIGINT');
    await agent.finished;
    await rm(home, { recursive: true });
  }
});
