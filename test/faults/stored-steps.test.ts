import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { createClient } from '@hopline/client';
import type { TaskReport } from '@hopline/task-audit';
import { collect, type Frame, frames, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** The effects of an agent are lines in a file. The message names the file, and where the first attempt ends. */
const MODULE = `
import { appendFileSync } from 'node:fs';
import { defineAgent, failed, step, tool } from '@hopline/agent';

const wait = () => new Promise(() => {});

export default defineAgent({
  name: 'clerk', description: 'Charges and sends', skills: ['clerk'],
  async *run({ text, attempt, signal }) {
    const [where, file] = text.split(' ');
    const effect = line => appendFileSync(file, line + ' ' + attempt + '\\n');
    const receipt = yield* step('charge', async ({ key }) => {
      effect('charge ' + key);
      if (attempt === 1 && where === 'inside') {
        effect('ready -');
        await wait();
      }
      return { by: attempt };
    });
    yield 'attempt ' + attempt + ', charged by ' + receipt.by + '\\n';
    if (attempt === 1 && where === 'host') {
      // Leaves time to append the text to the log.
      await new Promise(resolve => setTimeout(resolve, 300));
      process.kill(process.pid, 'SIGKILL');
    }
    if (where === 'away') {
      try {
        yield yield* step('fetch', () => {
          effect('fetch -');
          if (attempt === 1) throw new Error('the server is away');
          return 'fetched by ' + attempt + '\\n';
        });
      } catch {
        yield failed('the server is away', { retryable: true });
      }
    } else if (attempt === 1 && where !== 'nowhere') await wait();
    const sent = yield* tool('send', { to: 'ada' }, () => {
      effect('send -');
      return 'sent by ' + attempt;
    }, { stored: true });
    yield sent;
  },
});`;

let folder: string;
let cluster: Cluster;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-clerk-'));
  writeFileSync(join(folder, 'clerk.mjs'), MODULE);
  cluster = await Cluster.shared({
    agents: [{ name: 'clerk', adapter: 'module', path: './clerk.mjs' }],
    agentsFolder: folder,
    env: { HOPLINE_ACK_WAIT_MS: '5000' },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** The effects in the file as `name attempt`, and the keys of the charges. */
function effectsIn(file: string) {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const effects = lines.map(line => line.split(' ')).filter(([name]) => name !== 'ready');
  return {
    effects: effects.map(([name, , attempt]) => `${name} ${attempt}`),
    keys: new Set(effects.flatMap(([name, key]) => (name === 'charge' ? [key] : []))),
  };
}

function foldOf(list: readonly Frame[]): Fold {
  const fold = new Fold();
  for (const { event } of list) fold.add(event);
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  return fold;
}

/** Asks, kills the sub-agent (and at the same time a relay) once the answer has `text`, and returns all frames. */
async function askAndKill(question: string, isReady: (list: readonly Frame[]) => boolean): Promise<Frame[]> {
  const list: Frame[] = [];
  let killed: Promise<unknown> | undefined;
  const kill = async () => {
    const agent = cluster.agents[0]!;
    await Promise.all([agent.kill('SIGKILL'), cluster.killRelays()]);
    await Promise.all([agent.start(), cluster.startRelays()]);
  };
  const check = setInterval(() => {
    if (isReady(list)) killed ??= kill();
  }, 20);
  try {
    for await (const frame of frames(cluster.url, { text: question })) list.push(frame);
  } finally {
    clearInterval(check);
  }
  await killed;
  assert.ok(killed !== undefined);
  return list;
}

test('without a fault a turn has each effect once', { timeout: 120_000 }, async () => {
  const file = join(folder, 'nowhere');
  const fold = foldOf(await collect(cluster.url, { text: `nowhere ${file}` }));
  assert.equal(fold.textOf('streaming_result'), 'attempt 1, charged by 1\nsent by 1');
  assert.deepEqual(effectsIn(file).effects, ['charge 1', 'send 1']);
});

test('if a sub-agent dies between two steps, the next attempt gets the first result and repeats nothing', {
  timeout: 180_000,
}, async () => {
  const file = join(folder, 'between');
  const shown = (list: readonly Frame[]) => textOf(list, 'streaming_result').includes('charged by 1');
  const fold = foldOf(await askAndKill(`between ${file}`, shown));
  assert.equal(fold.textOf('streaming_result'), 'attempt 2, charged by 1\nsent by 2');
  assert.deepEqual(effectsIn(file).effects, ['charge 1', 'send 2']);
  const report = (await createClient({ url: cluster.url }).audit(fold.task!.id)) as unknown as TaskReport;
  assert.deepEqual(
    report.producers.flatMap(({ agent, attempt, steps = [] }) =>
      steps.map(({ name, outcome, of }) => [agent, attempt, name, outcome, of]),
    ),
    [
      ['clerk', 1, 'charge', 'ran', undefined],
      ['clerk', 2, 'charge', 'reused', 1],
      ['clerk', 2, 'send', 'ran', undefined],
    ],
  );
});

test('a step runs again, with the same key, if its process dies before the result is stored', { timeout: 180_000 }, async () => {
  const file = join(folder, 'inside');
  writeFileSync(file, '');
  const fold = foldOf(await askAndKill(`inside ${file}`, () => readFileSync(file, 'utf8').includes('ready')));
  assert.equal(fold.textOf('streaming_result'), 'attempt 2, charged by 2\nsent by 2');
  const { effects, keys } = effectsIn(file);
  assert.deepEqual(effects, ['charge 1', 'charge 2', 'send 2']);
  assert.equal(keys.size, 1);
});

test('only the process of the code dies, and the next one gets the result', { timeout: 120_000 }, async () => {
  const file = join(folder, 'host');
  const fold = foldOf(await collect(cluster.url, { text: `host ${file}` }));
  assert.equal(fold.textOf('streaming_result'), 'attempt 2, charged by 1\nsent by 2');
  assert.deepEqual(effectsIn(file).effects, ['charge 1', 'send 2']);
});

test('a call that is repeated after a retryable failure runs the step that failed again, and no other', {
  timeout: 120_000,
}, async () => {
  const file = join(folder, 'away');
  const fold = foldOf(await collect(cluster.url, { text: `away ${file}` }));
  assert.equal(fold.textOf('streaming_result'), 'attempt 2, charged by 1\nfetched by 2\nsent by 2');
  assert.deepEqual(effectsIn(file).effects, ['charge 1', 'fetch 1', 'fetch 2', 'send 2']);
});
