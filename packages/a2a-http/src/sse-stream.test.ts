import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { SseStream } from './sse-stream.ts';

const OK = ': ok\n\n';
const STALL_MS = 30_000;

/** A server whose responses are streams, in order of their requests. */
async function serve(t: TestContext, onStream: (stream: SseStream, index: number) => void): Promise<number> {
  let count = 0;
  const server = createServer((_request, response: ServerResponse) => {
    const stream = new SseStream(response, STALL_MS);
    stream.open({});
    onStream(stream, count++);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function bodyOf(port: number): Promise<string> {
  const [response] = (await once(get({ port, host: '127.0.0.1' }), 'response')) as [NodeJS.ReadableStream];
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}

/** Everything that a server sends to these bytes, until it closes the connection or `isOver`. */
async function exchange(port: number, bytes: string, isOver: (text: string) => boolean): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.setEncoding('utf8');
  socket.write(bytes);
  let text = '';
  for await (const chunk of socket) {
    text += chunk;
    if (isOver(text)) break;
  }
  return text;
}

test('what is sent arrives once and in order, in the turn of the head and later, beside large text and at the end', async t => {
  const large = '“large” '.repeat(400_000);
  const port = await serve(t, async stream => {
    stream.send('a\n\n');
    stream.send('é\n\n');
    await new Promise(resolve => setImmediate(resolve));
    stream.send('b\n\n');
    stream.send('c\n\n');
    await new Promise(resolve => setImmediate(resolve));
    stream.send('d\n\n');
    let isSending = true;
    const sending = stream.sendAll(large, STALL_MS).finally(() => (isSending = false));
    for (; isSending; await new Promise(resolve => setImmediate(resolve)))
      stream.send('dropped while larger text is written\n\n');
    assert.equal(await sending, true);
    stream.send('e\n\n');
    stream.end('f\n\n');
    stream.send('after the end\n\n');
  });
  assert.equal(await bodyOf(port), `${OK}a\n\né\n\nb\n\nc\n\nd\n\n${large}e\n\nf\n\n`);
});

test('a client of HTTP/1.0 reads a stream without chunks', async t => {
  const port = await serve(t, async stream => {
    await new Promise(resolve => setImmediate(resolve));
    stream.send('a\n\n');
    await new Promise(resolve => setImmediate(resolve));
    stream.end('b\n\n');
  });
  const text = await exchange(port, 'GET / HTTP/1.0\r\nhost: x\r\n\r\n', () => false);
  assert.equal(text.split('\r\n\r\n')[1], `${OK}a\n\nb\n\n`);
});

test('the stream of a pipelined request waits for the one before it', async t => {
  const streams: SseStream[] = [];
  const port = await serve(t, async (stream, index) => {
    streams.push(stream);
    if (index === 0) return;
    await new Promise(resolve => setImmediate(resolve));
    stream.send('second\n\n');
    streams[0]!.send('first\n\n');
    await new Promise(resolve => setImmediate(resolve));
    streams[0]!.end('end of the first\n\n');
    await new Promise(resolve => setImmediate(resolve));
    stream.end('end of the second\n\n');
  });
  const request = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
  const text = await exchange(port, request + request, all => all.split('\r\n0\r\n\r\n').length === 3);
  const bodies = text.split('HTTP/1.1 200 OK').slice(1);
  const contents = bodies.map(body => body.slice(body.indexOf('\r\n\r\n') + 4).replaceAll(/(^|\r\n)[0-9a-f]+\r\n/g, ''));
  assert.deepEqual(
    contents.map(content => content.replaceAll('\r\n', '')),
    [`${OK}first\n\nend of the first\n\n`, `${OK}second\n\nend of the second\n\n`],
  );
});
