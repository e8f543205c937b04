import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { collect, type Frame, foldOf, frames, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** How the process of the code ends, and in which attempts, as the message asks for it. */
const MODULE = `
const ways = {
  killed: () => process.kill(process.pid, 'SIGKILL'),
  exits: () => process.exit(0),
  throws: () => setTimeout(() => { throw new Error('not caught'); }),
  rejects: () => void Promise.reject(new Error('not caught')),
};
export default {
  name: 'mortal', description: 'Ends its process', skills: ['mortal'],
  async *run(turn) {
    const [how, when] = turn.text.split(' ');
    yield 'attempt ' + turn.attempt + ' of ' + how + '\\n';
    if (how === 'patient') {
      if (turn.attempt === 1) await new Promise(() => {});
      yield 'done';
      return;
    }
    if (turn.attempt === 1 || when === 'always') {
      // Leaves time to append the text to the log.
      await new Promise(resolve => setTimeout(resolve, 300));
      ways[how]();
      await new Promise(() => {});
    }
    yield 'done';
  },
};`;

let folder: string;
let cluster: Cluster;
let pid: number;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-mortal-'));
  writeFileSync(join(folder, 'mortal.mjs'), MODULE);
  cluster = await Cluster.start({ agents: [{ name: 'mortal', adapter: 'module', path: './mortal.mjs' }], agentsFolder: folder });
  pid = cluster.agents[0]!.pid;
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

for (const how of ['killed', 'exits', 'throws', 'rejects'])
  test(`the next attempt replaces the text of a turn whose process ${how}, and the sub-agent keeps running`, {
    timeout: 120_000,
  }, async () => {
    const fold = foldOf(await collect(cluster.url, { text: `${how} once` }));
    assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
    assert.equal(fold.textOf('streaming_result'), `attempt 2 of ${how}\ndone`);
    assert.deepEqual([cluster.agents[0]!.hasEnded, cluster.agents[0]!.pid], [false, pid]);
  });

test('a turn that ends its process in each attempt fails after three, with the beginning of its text', {
  timeout: 120_000,
}, async () => {
  const fold = foldOf(await collect(cluster.url, { text: 'exits always' }));
  assert.equal(fold.task?.status.state, 'TASK_STATE_FAILED');
  assert.equal(fold.task?.metadata?.reason, 'mortal: attempts exhausted');
  assert.equal(fold.textOf('streaming_result'), 'attempt 3 of exits\n');
  assert.ok(!cluster.agents[0]!.hasEnded);
});

test('a turn that shares the process runs again as well', { timeout: 120_000 }, async () => {
  const list: Frame[] = [];
  let killed: Promise<Frame[]> | undefined;
  for await (const frame of frames(cluster.url, { text: 'patient' })) {
    list.push(frame);
    if (textOf(list, 'streaming_result') !== '') killed ??= collect(cluster.url, { text: 'killed once' });
  }
  assert.equal(foldOf(list).textOf('streaming_result'), 'attempt 2 of patient\ndone');
  assert.equal(foldOf(await killed!).task?.status.state, 'TASK_STATE_COMPLETED');
});

test('an error that the code does not catch is in no log line', () => {
  assert.doesNotMatch(cluster.agents[0]!.output, /not caught/);
  assert.match(cluster.agents[0]!.output, /"reason":"code_ended"/);
});
