import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Answer, type ClientLine, isAnswer } from './load.ts';

const CLIENT = fileURLToPath(new URL('load-client.mjs', import.meta.url));
const EXPECTED = 'one two three';

type Respond = (response: ServerResponse) => void;

/** Lines of one client until its first answer. The server responds to its requests in turn. */
async function firstAnswer(t: TestContext, responses: readonly Respond[]): Promise<{ lines: ClientLine[]; answer: Answer }> {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-load-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'expected.txt');
  writeFileSync(file, EXPECTED);
  let requests = 0;
  const server = createServer((request, response) => {
    request.resume();
    responses[requests++]?.(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const env = { ...process.env, URL: url, QUESTION: 'hi', WORKERS: '1', EXPECTED_FILE: file };
  const child = spawn(process.execPath, [CLIENT], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => void child.kill('SIGKILL'));
  const lines: ClientLine[] = [];
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as ClientLine;
    lines.push(line);
    // Before the answer, so that the client asks no second question.
    if ('asked' in line) child.kill('SIGUSR2');
    if (isAnswer(line)) return { lines, answer: line };
  }
  throw new Error('the client ended without an answer');
}

const frame = (id: number, result: object) => `id: ${id}\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: '1', result })}\n\n`;
const TASK = frame(1, { kind: 'task', id: 't', status: { state: 'submitted' } });
const text = (id: number, part: string, append: boolean) => {
  const artifact = { artifactId: 'a', name: 'streaming_result', parts: [{ kind: 'text', text: part }] };
  return frame(id, { kind: 'artifact-update', taskId: 't', append, artifact });
};
const END = frame(9, { kind: 'status-update', taskId: 't', final: true, status: { state: 'completed' } });
const streams =
  (...frames: string[]): Respond =>
  response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(frames.join(''));
  };

test('a client repeats a refused question, resumes a broken stream, and finds the text whole', async t => {
  const { lines, answer } = await firstAnswer(t, [
    response => response.writeHead(503, { 'retry-after': '0' }).end(),
    streams(TASK, text(2, 'one ', false)),
    streams(text(3, 'two three', true), END),
  ]);
  assert.deepEqual([answer.state, answer.task, answer.refused, answer.broken], ['completed', 't', 1, 1]);
  assert.equal(answer.wrong, undefined);
  assert.deepEqual(
    lines.flatMap(line => ('refused' in line && !isAnswer(line) ? [line.refused] : [])),
    [answer.question],
  );
});

test('a client shows a text that lacks a word, and one that has a word twice', async t => {
  const lacking = await firstAnswer(t, [streams(TASK, text(2, 'one ', false), text(3, 'three', true), END)]);
  assert.deepEqual(lacking.answer.wrong, ['one three']);
  const doubled = await firstAnswer(t, [streams(TASK, text(2, 'one two ', false), text(3, 'two three', true), END)]);
  assert.deepEqual(doubled.answer.wrong, ['one two two three']);
});

test('a client shows a request without a response and a status that is not a refusal as failed', async t => {
  const { lines } = await firstAnswer(t, [
    response => response.destroy(),
    response => response.writeHead(500).end(),
    streams(TASK, text(2, EXPECTED, false), END),
  ]);
  assert.deepEqual(
    lines.flatMap(line => ('failed' in line && !isAnswer(line) ? [line.failed] : [])),
    ['message/stream: UND_ERR_SOCKET', 'status 500'],
  );
});
