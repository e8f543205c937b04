import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from '../run.ts';
import { runWith } from '../run-with.test-kit.ts';
import { VIEWED_BYTES_MAX } from './view.ts';

const GOLDEN = fileURLToPath(new URL('../../../task-file/golden/version-1.hopline.jsonl', import.meta.url));
const TEXT = readFileSync(GOLDEN, 'utf8');

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-view-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** The file in a page, as the page reads it. */
function fileIn(page: string): { name: string; text: string } {
  const [, data] = /<script type="application\/json" id="task-file">(.*)<\/script>/.exec(page) ?? [];
  assert.ok(data, 'the page has no file');
  return JSON.parse(data);
}

test('a file becomes one page that needs no other file, and whose policy allows only its own script and style', async () => {
  const path = join(folder, 'page.html');
  const { code, out } = await runWith(folder, ['view', GOLDEN, '--output', path]);
  assert.deepEqual([code, out], [0, '']);
  const page = readFileSync(path, 'utf8');
  assert.deepEqual(fileIn(page), { name: 'version-1.hopline.jsonl', text: TEXT });
  const [, policy = ''] = /Content-Security-Policy" content="([^"]+)"/.exec(page) ?? [];
  const hashed = [/<script type="module">([\s\S]*?)<\/script>/, /<style>([\s\S]*?)<\/style>/].map(part =>
    createHash('sha256').update(part.exec(page)![1]!).digest('base64'),
  );
  assert.match(policy, /^default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-\S+'; img-src data:; /);
  for (const hash of hashed) assert.ok(policy.includes(`'sha256-${hash}'`));
  const markup = page.replace(/<script[\s\S]*?<\/script>|<style>[\s\S]*?<\/style>/g, '');
  assert.doesNotMatch(markup, /(?:src|href)="(?!data:)|\son\w+=/);
});

test('the text of a task cannot close the element that contains it', async () => {
  const { TaskWriter, readTaskFile } = await import('@hopline/task-file');
  const writer = new TaskWriter();
  let hostile = '';
  for await (const entry of readTaskFile([Buffer.from(TEXT)])) {
    if (entry.kind === 'header')
      hostile += writer.header({ ...entry.header, agents: ['</script><script>alert(1)</script><!--'] });
    else hostile += entry.kind === 'end' ? writer.end(entry) : writer.record(entry);
  }
  const [file, path] = [join(folder, 'hostile.hopline.jsonl'), join(folder, 'hostile.html')];
  writeFileSync(file, hostile);
  assert.equal((await runWith(folder, ['view', file, '--output', path])).code, 0);
  const page = readFileSync(path, 'utf8');
  assert.equal(fileIn(page).text, hostile);
  assert.equal(page.split('</script>').length, 3);
  assert.doesNotMatch(page.slice(page.indexOf('id="task-file"')).split('</script>')[0]!, /<script|<!--/);
});

test('the page is served on loopback at an address that cannot be guessed, until the command ends', async () => {
  const stop = new AbortController();
  const printed = Promise.withResolvers<string>();
  const ended = run(['view', GOLDEN, '--no-open', '--json'], {
    environment: { NO_COLOR: '1', HOPLINE_HOME: folder },
    folder,
    stdin: process.stdin,
    stdout: { write: text => printed.resolve(text) },
    stderr: { write: text => printed.reject(new Error(text)) },
    signal: stop.signal,
    takeInterrupts: () => {},
  });
  const { url } = JSON.parse(await printed.promise) as { url: string };
  const { hostname, pathname, origin } = new URL(url);
  assert.equal(hostname, '127.0.0.1');
  assert.match(pathname, /^\/[\w-]{22}\/$/);
  const response = await fetch(url);
  assert.equal(fileIn(await response.text()).text, TEXT);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  for (const path of ['/', '/index.html', `${pathname}x`]) assert.equal((await fetch(origin + path)).status, 404, path);
  assert.equal((await fetch(url, { method: 'POST' })).status, 404);
  stop.abort(new Error('interrupted'));
  assert.equal(await ended, 0);
  await assert.rejects(fetch(url), { message: 'fetch failed' });
});

test('a file that cannot be shown is refused with one sentence', async () => {
  const cases: [string, string, RegExp][] = [
    ['notes.txt', 'hello\n', /notes\.txt: not a task file: its first line must be a header/],
    ['edited.jsonl', TEXT.replace('it works', 'it fails'), /edited\.jsonl: line 5: the sum does not match/],
    ['cut.jsonl', TEXT.slice(0, 1_000), /cut\.jsonl: .*the file ends within this line/],
  ];
  for (const [name, text, message] of cases) {
    writeFileSync(join(folder, name), text);
    const { code, err, out } = await runWith(folder, ['view', join(folder, name), '--no-open']);
    assert.deepEqual([code, out], [2, ''], name);
    assert.match(err, message);
    assert.equal(err.trimEnd().split('\n').length, 1, err);
  }
  assert.match((await runWith(folder, ['view', join(folder, 'none.jsonl')])).err, /none\.jsonl cannot be read \(ENOENT\)/);
  assert.match(
    (await runWith(folder, ['view', GOLDEN, '--output', folder])).err,
    /--output: the page cannot be written to .*EISDIR/,
  );
});

test('a file of the maximum size is read, and a larger one is refused before it is read', async () => {
  const file = join(folder, 'large.jsonl');
  writeFileSync(file, '');
  truncateSync(file, VIEWED_BYTES_MAX);
  assert.match((await runWith(folder, ['view', file, '--no-open'])).err, /line 1: the line has more than|not a task file/);
  truncateSync(file, VIEWED_BYTES_MAX + 1);
  assert.match((await runWith(folder, ['view', file, '--no-open'])).err, /has 67108865 bytes, and a page shows at most 67108864/);
});
