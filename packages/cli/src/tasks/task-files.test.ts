import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { decodeProgress, readTaskFile, TaskWriter } from '@hopline/task-file';
import { collect } from '../../../../test/kit/collect.ts';
import { listen } from '../../../../test/kit/listen.ts';
import { run } from '../run.ts';

const CHECKOUT = fileURLToPath(new URL('../../../../', import.meta.url));
const GOLDEN = join(CHECKOUT, 'packages/task-file/golden/version-1.hopline.jsonl');
const TEXT = readFileSync(GOLDEN, 'utf8');
const LINES = TEXT.trimEnd().split('\n');
const TASK = '01a1fc64-e2c9-7e6c-b06a-b36271f9e46f';

let folder: string;

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-files-'));
});

after(() => rmSync(folder, { recursive: true, force: true }));

async function hopline(argv: string[], url = 'http://127.0.0.1:1/', { interruptsAtText = false, isInterrupted = false } = {}) {
  const stop = new AbortController();
  if (isInterrupted) stop.abort(new Error('interrupted'));
  const written = { out: '', err: '' };
  const onOut = (text: string) => {
    written.out += text;
    if (interruptsAtText) stop.abort(new Error('interrupted'));
  };
  const code = await run(argv, {
    environment: { HOPLINE_URL: url, NO_COLOR: '1' },
    folder: CHECKOUT,
    stdin: Object.assign(Readable.from([]), { isTTY: false }),
    stdout: { isTTY: false, write: onOut },
    stderr: { isTTY: false, write: text => (written.err += text) },
    signal: stop.signal,
    takeInterrupts: () => {},
  });
  return { code, ...written };
}

/** A server that exports the golden file and breaks the connection after each `lines` lines. */
async function exporting(lines: number) {
  const requests: (number | undefined)[] = [];
  const server = createServer((request, response) => {
    const after = new URL(request.url!, 'http://h').searchParams.get('after');
    const progress = after === null ? undefined : decodeProgress(after);
    const from = progress === undefined ? 0 : 1 + progress.inputs + progress.facts;
    requests.push(progress === undefined ? undefined : from);
    const part = LINES.slice(from, from + lines);
    response.writeHead(200, { 'content-type': 'application/jsonl' });
    response.write(part.map(line => `${line}\n`).join(''));
    if (from + lines >= LINES.length) response.end();
    else setImmediate(() => response.destroy());
  });
  const origin = await listen(server);
  return {
    url: `${origin}/`,
    requests,
    [Symbol.asyncDispose]: () => new Promise<void>(resolve => server.close(() => resolve())),
  };
}

test('an export whose connection breaks continues where it stopped', async () => {
  await using server = await exporting(3);
  const { code, out, err } = await hopline(['export', TASK], server.url);
  const isOpen = `task ${TASK} has not ended (working): the export has its events so far; export it later into another file\n`;
  assert.deepEqual([code, out, err], [0, TEXT, isOpen]);
  assert.equal(server.requests[0], undefined);
  assert.ok(server.requests.length >= 3);
});

test('an export into a truncated file writes only the rest', async () => {
  await using server = await exporting(100);
  const file = join(folder, 'cut.hopline.jsonl');
  const kept = `${LINES.slice(0, 3).join('\n')}\n`;
  writeFileSync(file, `${kept}${LINES[3]!.slice(0, 50)}`);
  assert.equal((await hopline(['export', TASK, '--output', file], server.url)).code, 0);
  assert.deepEqual([readFileSync(file, 'utf8'), server.requests], [TEXT, [3]]);
});

test('an export into a file that ends within a task continues that task before the others', async () => {
  await using server = await exporting(100);
  const file = join(folder, 'two.hopline.jsonl');
  writeFileSync(file, `${LINES.slice(0, 4).join('\n')}\n`);
  assert.equal((await hopline(['export', 'another', TASK, '--output', file], server.url)).code, 0);
  // The server has the same file for every task.
  assert.equal(readFileSync(file, 'utf8'), TEXT + TEXT);
  assert.deepEqual(server.requests, [4, undefined]);
});

/** The golden file as a server exports it to the owner of the task. */
async function textOfServer(): Promise<string> {
  const writer = new TaskWriter();
  let text = '';
  for await (const entry of readTaskFile([Buffer.from(TEXT)])) {
    if (entry.kind === 'header') text += writer.header({ ...entry.header, redacted: ['services'] });
    else text += entry.kind === 'end' ? writer.end(entry) : writer.record(entry);
  }
  return text;
}

test('an export does not touch another file', async () => {
  await using server = await exporting(100);
  const cases: [string, string, string[], RegExp][] = [
    ['notes.txt', 'hello\n', [], /cannot be continued \(not a task file/],
    ['edited.jsonl', TEXT.replace('it works', 'it fails'), [], /cannot be continued \(line 5: the sum does not match/],
    ['other.jsonl', TEXT, ['another-task'], /the file contains other tasks/],
    ['redacted.jsonl', TEXT, [TASK, '--redact'], /a redacted file cannot be continued/],
    ['kinds.jsonl', `${LINES[0]}\n`, [TASK, '--facts'], /the file contains inputs and facts/],
    // Complete files are refused as well, because a repeated command with more tasks would write nothing.
    ['whole.jsonl', TEXT, [TASK, '--inputs'], /the file contains inputs and facts; export the same, or remove it/],
    ['services.jsonl', await textOfServer(), [TASK, '--nats'], /the file lacks what only --nats exports; remove it/],
  ];
  for (const [name, content, argv, message] of cases) {
    const file = join(folder, name);
    writeFileSync(file, content);
    const { code, err } = await hopline(['export', ...(argv.length > 0 ? argv : [TASK]), '--output', file], server.url);
    assert.equal(code, 2, name);
    assert.match(err, message);
    assert.equal(readFileSync(file, 'utf8'), content);
  }
  assert.equal((await hopline(['export', TASK, '--output', join(folder, 'none', 'f')], server.url)).code, 2);
});

test('an export of an unknown task leaves no file behind, and an export to a full disk prints one sentence', {
  skip: process.platform === 'win32',
}, async () => {
  const file = join(folder, 'absent.hopline.jsonl');
  const absent = await hopline(['export', 'no-task', '--output', file], 'http://127.0.0.1:1/');
  assert.deepEqual([absent.code, existsSync(file)], [3, false]);
  await using server = await exporting(LINES.length);
  const large = join(folder, 'large.hopline.jsonl');
  const main = fileURLToPath(new URL('../main.ts', import.meta.url));
  // Turns off coverage, which could not be written to a full disk either.
  const command = `unset NODE_V8_COVERAGE; ulimit -f 1; exec "${process.execPath}" "${main}" export ${TASK} --output "${large}" --url ${server.url}`;
  const limited = await promisify(execFile)('bash', ['-c', command]).then(
    () => assert.fail('the file is larger than the limit'),
    (thrown: { code: number; stderr: string }) => thrown,
  );
  assert.equal(limited.code, 2);
  assert.match(limited.stderr, /^hopline: --output .* cannot be written \(EFBIG\)\n$/m);
  assert.doesNotMatch(limited.stderr, /\n\s+at /);
});

test('a redacted export has no text, even when its connection breaks', async () => {
  await using server = await exporting(4);
  const { code, out } = await hopline(['export', TASK, '--redact'], server.url);
  assert.equal(code, 0);
  const entries = await collect(readTaskFile([Buffer.from(out)]));
  assert.equal(entries.length, LINES.length);
  assert.ok(!out.includes(TASK) && !out.includes('works') && !out.includes('explain'));
});

test('a file is replayed whole, or in part between two cursors', async () => {
  assert.deepEqual(await hopline(['replay', GOLDEN, '--pace', 'max']), {
    code: 4,
    out: 'How it works 🎯\n',
    err: '(the task had not ended: its events end here)\n',
  });
  const { out } = await hopline(['replay', GOLDEN, '--json', '--from', '2.20', '--to', '3.30']);
  assert.deepEqual(
    out
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).cursor),
    ['3.30'],
  );
  const interrupted = await hopline(['replay', GOLDEN, '--pace', '0.01x'], undefined, { interruptsAtText: true });
  assert.deepEqual(interrupted, { code: 130, out: 'How', err: '' }, 'no task goes on');
  const nothing = await hopline(['replay', GOLDEN, '--from', '9.9']);
  assert.deepEqual([nothing.out, nothing.err], ['', '(no events between these cursors)\n']);
});

test('replaying a file that cannot be read, or that contains several tasks, prints one sentence', async () => {
  const several = join(folder, 'several.hopline.jsonl');
  writeFileSync(several, TEXT + TEXT);
  const writer = new TaskWriter();
  const inputs = join(folder, 'inputs.hopline.jsonl');
  const { sum: _sum, ...header } = JSON.parse(LINES[0]!);
  writeFileSync(inputs, writer.header({ ...header, contains: ['inputs'] }));
  const empty = join(folder, 'empty.hopline.jsonl');
  writeFileSync(empty, '');
  const edited = join(folder, 'replayed.hopline.jsonl');
  writeFileSync(edited, TEXT.replace('it works', 'it fails'));
  for (const [subject, message] of [
    [several, /contains several tasks/],
    [inputs, /contains only inputs/],
    [edited, /line 5: the sum does not match/],
    [empty, /has no task: the file is empty/],
    ['no/such/file', /there is no file/],
    [join(CHECKOUT, 'README.md'), /not a task file/],
    [folder, /cannot be read \(EISDIR\)/],
  ] as const) {
    const { code, err } = await hopline(['replay', subject, '--pace', 'max']);
    assert.equal(code, 2, subject);
    assert.match(err, message);
    assert.equal(err.trim().split('\n').length, 1);
  }
});

test('the server of one recorded task names it in the singular', async () => {
  const { code, out } = await hopline(['serve', GOLDEN, '--port', '0'], undefined, { isInterrupted: true });
  assert.equal(code, 0);
  assert.match(out, /^1 recorded task at /);
});

test('serving a file that cannot be served prints one sentence', async () => {
  const several = join(folder, 'twice.hopline.jsonl');
  writeFileSync(several, TEXT + TEXT);
  for (const [argv, message] of [
    [[several], /is in the files twice/],
    [[join(CHECKOUT, 'README.md')], /not a task file/],
    [['no-such-file'], /cannot be read \(ENOENT\)/],
    [[folder], /cannot be read \(EISDIR\)/],
    [[GOLDEN, '--fault', 'drop=1'], /--fault: a fault must be cut=FRAMES/],
    [[GOLDEN, '--host', '256.0.0.1'], /the server cannot listen on/],
  ] as const) {
    const { code, err } = await hopline(['serve', ...argv, '--port', '0']);
    assert.equal(code, 2, argv.join(' '));
    assert.match(err, message);
  }
});
