import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { HoplineCommand } from '../support/cluster/hopline-command.ts';

/** Conversations of the command: `ask --continue` and `chat`. */

const TIMEOUT = { timeout: 180_000 };

let remote: RemoteAgent;
let cluster: Cluster;
let home: string;

before(async () => {
  home = mkdtempSync(join(tmpdir(), 'hopline-chat-'));
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text, turn }) {
      if (text.includes('fail')) return yield { fail: true, text: 'no cheese' };
      if (text === 'which' && turn === 1) return yield { inputRequired: 'Which one?' };
      yield { token: `<${text}>` };
      if (text === 'slow') for (let n = 0; n < 3_000; n += 1) yield { pause: 20 };
      yield { complete: true };
    },
  });
  cluster = await Cluster.shared({
    agents: [
      { name: 'echo', adapter: 'a2a', url: remote.url },
      { name: 'other', adapter: 'a2a', url: remote.url },
    ],
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  rmSync(home, { recursive: true, force: true });
});

const start = (argv: readonly string[], input: string | null = null) =>
  new HoplineCommand(cluster.url, argv, input, { HOPLINE_HOME: home });
const ask = (...argv: string[]) => start(['ask', ...argv], '').finished;

/** Contexts and agents of the newest tasks, newest first. */
async function newest(limit: number): Promise<{ id: string; contextId: string; state: string; agent: unknown; text: string }[]> {
  const { out } = await start(['list', '--json', '--limit', String(limit)], '').finished;
  const tasks = out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
  return Promise.all(
    tasks.map(async ({ id, contextId, status }) => {
      const { history = [] } = JSON.parse((await start(['get', id, '--json'], '').finished).out);
      return { id, contextId, state: status.state, agent: history[0]?.metadata?.agent, text: history[0]?.parts[0].text };
    }),
  );
}

test('--continue continues the last conversation with its agent, and replies to a waiting task', TIMEOUT, async () => {
  const none = await start(['ask', '--continue', 'more', '--url', `${cluster.url}/other`], '').finished;
  assert.deepEqual([none.code, /no conversation with .* to continue/.test(none.err)], [2, true]);
  await ask('--agent', 'echo', 'one');
  assert.deepEqual(await ask('--continue', 'two'), { code: 0, out: '<two>', err: '' });
  const [second, first] = await newest(2);
  assert.equal(second!.contextId, first!.contextId);
  assert.deepEqual([first!.agent, second!.agent], ['echo', 'echo']);
  assert.equal((await ask('--continue', 'which')).code, 4);
  assert.deepEqual(await ask('--continue', 'this one'), { code: 0, out: '<this one>', err: '' });
  const [replied] = await newest(1);
  assert.deepEqual([replied!.text, replied!.state, replied!.contextId], ['which', 'TASK_STATE_COMPLETED', first!.contextId]);
});

test('chat: each line of a pipe is a message of one conversation, and standard output has the answers', TIMEOUT, async () => {
  const lines = ['one', '/agent other', 'two', '', '//three', '/what', '/help', '/new', 'four', '/quit', 'never'];
  const { code, out, err } = await start(['chat', '--agent', 'echo'], `${lines.join('\n')}\n`).finished;
  assert.deepEqual([code, out], [0, '<one>\n<two>\n</three>\n<four>\n']);
  assert.match(err, /^the next message goes to other\nunknown command \/what; \/help lists the commands\n\/agent NAME/);
  const [four, three, two, one] = await newest(4);
  assert.deepEqual([one!.agent, two!.agent, three!.agent, four!.agent], ['echo', 'other', 'other', 'other']);
  assert.equal(new Set([one, two, three].map(task => task!.contextId)).size, 1);
  assert.notEqual(four!.contextId, one!.contextId);
});

test("chat: a line after an agent's question is its answer; a failure does not end the chat", TIMEOUT, async () => {
  const chat = start(['chat', '--agent', 'echo']);
  chat.write('which\n');
  await chat.shows('input required: Which one?');
  chat.write('this one\n');
  await chat.shows('<this one>');
  chat.write('fail\n');
  await chat.shows('failed: ');
  chat.write('last\n');
  chat.end();
  const { code, out } = await chat.finished;
  assert.deepEqual([code, out], [0, '<this one>\n<last>\n']);
  assert.equal(
    (await start(['chat', '--agent', 'echo'], 'one\nfail\n').finished).code,
    1,
    'the exit code is that of the last message',
  );
});

test('chat: /cancel and Ctrl-C cancel the answer in progress, and a second Ctrl-C leaves', TIMEOUT, async () => {
  for (const cancel of [(chat: HoplineCommand) => chat.write('/cancel\n'), (chat: HoplineCommand) => chat.kill('SIGINT')]) {
    const chat = start(['chat', '--agent', 'echo']);
    chat.write('slow\n');
    await chat.shows('<slow>');
    cancel(chat);
    await chat.shows('canceled');
    chat.write('next\n');
    await chat.shows('<next>');
    chat.end();
    assert.deepEqual(await chat.finished.then(({ code, out }) => [code, out]), [0, '<slow>\n<next>\n']);
    const [, slow] = await newest(2);
    assert.equal(slow!.state, 'TASK_STATE_CANCELED');
  }
  const idle = start(['chat']);
  idle.write('/help\n');
  await idle.shows('/quit');
  idle.kill('SIGINT');
  await idle.shows('Ctrl-C again leaves');
  idle.kill('SIGINT');
  assert.equal((await idle.finished).code, 130);
});

test('chat --continue continues where ask ended', TIMEOUT, async () => {
  await ask('--agent', 'other', 'before');
  const { out } = await start(['chat', '--continue'], 'after\n').finished;
  assert.equal(out, '<after>\n');
  const [second, first] = await newest(2);
  assert.deepEqual([second!.contextId, second!.agent], [first!.contextId, 'other']);
});

test('list shows time, state, duration, agent, context and first words or reason, by agent and time', TIMEOUT, async () => {
  const context = crypto.randomUUID();
  await ask('--agent', 'echo', '--context', context, 'the first   words\nof a question');
  await ask('--agent', 'other', '--context', context, 'fail');
  const { out } = await start(['list', '--context', context], '').finished;
  const [failed, completed] = out.trimEnd().split('\n');
  const time = String.raw`\S{36}  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d`;
  assert.match(
    completed!,
    new RegExp(String.raw`^${time}  completed  +\d+\.\d s  echo  +${context}  "the first words of a question"$`),
  );
  assert.match(failed!, new RegExp(String.raw`^${time}  failed  +\d+\.\d s  other  +${context}  "fail"  \(.*no cheese.*\)$`));
  const only = await start(['list', '--context', context, '--agent', 'other', '--since', '1h'], '').finished;
  assert.equal(only.out, `${failed}\n`);
  assert.equal((await start(['list', '--context', context, '--since', '2099-01-01'], '').finished).out, '');
});

test('list --watch prints a task when it changes', TIMEOUT, async () => {
  const context = crypto.randomUUID();
  await ask('--agent', 'echo', '--context', context, 'one');
  const watch = start(['list', '--watch', '--context', context]);
  await watch.shows('"one"');
  const chat = start(['chat', '--agent', 'echo', '--context', context]);
  chat.write('slow\n');
  await watch.shows('  working ');
  chat.write('/cancel\n');
  await watch.shows('  canceled ');
  chat.end();
  await chat.finished;
  watch.kill('SIGINT');
  const { code, out } = await watch.finished;
  assert.equal(code, 130);
  assert.equal(out.split('"one"').length, 2, 'a task that did not change is not printed again');
});
