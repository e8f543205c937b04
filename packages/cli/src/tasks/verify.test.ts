import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { StoredTask } from '@hopline/replay';
import { plainAnswer, taskFileOf } from '@hopline/replay/test-kit';
import { runWith } from '../run-with.test-kit.ts';

const folder = mkdtempSync(join(tmpdir(), 'hopline-verify-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const hopline = (...argv: string[]) => runWith(folder, argv);

async function fileOf(name: string, ...tasks: StoredTask[]): Promise<string> {
  const path = join(folder, name);
  writeFileSync(path, (await Promise.all(tasks.map(task => taskFileOf(task)))).join(''));
  return path;
}

/** The task with a fact that no rule derives from its inputs. */
function changed(): StoredTask {
  const task = plainAnswer().stored({ eventCostMs: 0 });
  const chunk = task.facts.flatMap(({ record }) => record.facts).filter(fact => fact.kind === 'artifact.updated')[2]!;
  chunk.event.artifactUpdate.artifact.parts[0]!.text = 'planted';
  return task;
}

test('verify prints the count and exits with 0 when every task is the same', async () => {
  const path = await fileOf('same.hopline.jsonl', plainAnswer().stored(), plainAnswer().stored());
  assert.deepEqual(await hopline('verify', path), {
    code: 0,
    out: '2 tasks: 2 same, 0 differ, 0 failed, 0 unreadable\n',
    err: '',
  });
});

test('a difference is reported by input, fact and member, never with text of the task', async () => {
  const path = await fileOf('changed.hopline.jsonl', changed(), plainAnswer().stored());
  const { code, out } = await hopline('verify', path);
  assert.equal(code, 1);
  assert.equal(
    out,
    [
      `task-1 of ${path}: differs (semantic)`,
      '  input 5, in record 7; before: working, turn 1, generation 4',
      '  stored:  artifact.updated, generation 5, lane a',
      '  decided: artifact.updated, generation 5, lane a',
      '  differs in event.artifactUpdate.artifact.parts.0.text: a text of 7 characters is stored, a text of 2 characters decided',
      '2 tasks: 1 same, 1 differ, 0 failed, 0 unreadable',
      '',
    ].join('\n'),
  );
  const terminal = await runWith(folder, ['verify', path], { NO_COLOR: undefined, TERM: 'xterm' }, true);
  const colored = terminal.out.split('\n').filter(line => line.includes('\x1b'));
  assert.deepEqual(
    colored.map(line => line.slice(0, 15)),
    ['\x1b[31m  stored: ', '\x1b[32m  decided:'],
  );
  const [verdict, , counts] = (await hopline('verify', path, '--json')).out.trim().split('\n');
  assert.equal((JSON.parse(verdict!) as { expected: { kind: string } }).expected.kind, 'artifact.updated');
  assert.deepEqual(JSON.parse(counts!), { tasks: 2, same: 1, differs: 1, failed: 0, unreadable: 0, expired: 0 });
});

test('a terminal shows how many tasks are verified, in a line that each difference and the counts replace', async () => {
  const path = await fileOf('progress.hopline.jsonl', plainAnswer().stored(), changed());
  const { err } = await runWith(folder, ['verify', path], {}, true);
  const clear = '\r\x1b[K';
  assert.equal(err, `\r1 task verified\x1b[K\r2 tasks verified\x1b[K${clear}${clear}`);
  assert.equal((await runWith(folder, ['verify', path])).err, '');
});

test('files that cannot be verified are counted, and each gets one sentence', async () => {
  const whole = await taskFileOf(plainAnswer().stored());
  const path = join(folder, 'cut.hopline.jsonl');
  writeFileSync(path, whole.slice(0, whole.length / 2));
  const cut = await hopline('verify', path);
  assert.deepEqual([cut.code, cut.out.split('\n').length, cut.out.includes('unreadable: ')], [1, 3, true]);
  const task = plainAnswer().stored();
  const expired = await fileOf('expired.hopline.jsonl', { ...task, inputs: task.inputs.slice(1) });
  const named = await hopline('verify', expired);
  assert.equal(named.code, 1);
  assert.match(
    named.out,
    /: not verified: the log lacks the first inputs .* or it was imported\n1 task: .* 1 not verified because the log lacks/,
  );
});

test('an error in the arguments is reported in one line', async () => {
  for (const [argv, reason] of [
    [[], 'verify requires task ids, task files, or --all'],
    [['task', '--all'], 'verify requires task ids, task files, or --all'],
    [['task', '--sample', '3'], '--since and --sample require --all'],
    [['--all', '--sample', '0'], '--sample must be a number from 1 to 10000000'],
    [['missing.hopline.jsonl'], 'there is no file missing.hopline.jsonl'],
    [['missing.jsonl'], 'there is no file missing.jsonl'],
    [['task'], 'no local cluster is running'],
  ] as const) {
    const { code, err } = await hopline('verify', ...argv);
    assert.deepEqual([code, err.includes(reason), err.trim().split('\n').length], [2, true, 1], err);
  }
});
