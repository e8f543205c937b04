import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, createServer as createHttp2Server, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type Balancer, startBalancer } from './balancer.ts';

const portOf = (server: Server | Http2Server) => (server.address() as AddressInfo).port;

type Handle = (replica: number, request: IncomingMessage, response: ServerResponse) => void;
type HandleCall = (replica: number, stream: ServerHttp2Stream) => void;

async function balanced(t: TestContext, handle: Handle, handleCall: HandleCall = () => {}): Promise<Balancer> {
  const replicas = await Promise.all(
    [0, 1].map(async index => {
      const http = createServer((request, response) => handle(index, request, response)).listen(0, '127.0.0.1');
      const grpc = createHttp2Server();
      grpc.on('stream', (stream: ServerHttp2Stream) => handleCall(index, stream));
      await Promise.all([once(http, 'listening'), once(grpc.listen(0, '127.0.0.1'), 'listening')]);
      return { http, grpc };
    }),
  );
  const balancer = await startBalancer(replicas.map(({ http, grpc }) => ({ httpPort: portOf(http), grpcPort: portOf(grpc) })));
  t.after(async () => {
    await balancer.close();
    for (const { http, grpc } of replicas) {
      http.closeAllConnections();
      http.close();
      grpc.close();
    }
  });
  return balancer;
}

test('requests go to the replicas in turn, with path, headers and body', async t => {
  const { url } = await balanced(t, (replica, request, response) => {
    response.writeHead(201, { 'x-replica': replica, 'set-cookie': ['a=1', 'b=2'] });
    response.write(`${request.method} ${request.url} ${request.headers['x-from']} `);
    request.pipe(response);
  });
  const answers: unknown[] = [];
  for (const body of ['one', 'two', 'three']) {
    const response = await fetch(`${url}/a%20b?c=d`, { method: 'PUT', headers: { 'x-from': 'client' }, body });
    assert.deepEqual([response.status, response.headers.getSetCookie()], [201, ['a=1', 'b=2']]);
    answers.push([response.headers.get('x-replica'), await response.text()]);
  }
  const echoOf = (body: string) => `PUT /a%20b?c=d client ${body}`;
  assert.deepEqual(answers, [
    ['0', echoOf('one')],
    ['1', echoOf('two')],
    ['0', echoOf('three')],
  ]);
});

test('the head and each piece of a stream are passed at once, and a client disconnect closes the upstream connection', async t => {
  const opened = Promise.withResolvers<ServerResponse>();
  const { url } = await balanced(t, (_replica, _request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    opened.resolve(response);
  });
  const leaving = new AbortController();
  const stream = await fetch(url, { signal: leaving.signal });
  const upstream = await opened.promise;
  const reader = stream.body!.getReader();
  for (const piece of ['data: 1\n\n', ':\n']) {
    upstream.write(piece);
    assert.equal(Buffer.from((await reader.read()).value!).toString(), piece);
  }
  leaving.abort();
  await once(upstream, 'close');
  assert.equal(upstream.writableFinished, false);
});

test('a stream that its replica cuts is cut for the client too, and an absent replica gives 502', async t => {
  const { url } = await balanced(t, (replica, request, response) => {
    if (replica === 1) return request.socket.destroy();
    response.writeHead(200);
    response.write('begun', () => response.destroy());
  });
  await assert.rejects(
    fetch(url).then(response => response.text()),
    { message: 'terminated' },
  );
  assert.equal((await fetch(url)).status, 502);
});

test('calls of one HTTP/2 connection go to the replicas in turn, with trailers or only trailers', {
  timeout: 120_000,
}, async t => {
  const canceled = Promise.withResolvers<number>();
  const { grpcUrl } = await balanced(
    t,
    () => {},
    (replica, stream) => {
      if (replica === 1) return stream.respond({ ':status': 200, 'grpc-status': '5' }, { endStream: true });
      stream.respond({ ':status': 200, 'x-replica': '0' }, { waitForTrailers: true });
      stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.on('data', piece => stream.write(piece)).once('end', () => stream.end());
      stream.once('close', () => stream.rstCode !== 0 && canceled.resolve(stream.rstCode));
    },
  );
  const session = connect(`http://${grpcUrl}`);
  t.after(() => session.destroy());
  const call = (end: boolean) => {
    const stream = session.request({ ':method': 'POST', ':path': '/a.B/C' });
    if (end) stream.end('ping');
    else stream.write('ping');
    return stream;
  };
  const first = call(true);
  const trailers = once(first, 'trailers');
  assert.equal(String((await once(first, 'data'))[0]), 'ping');
  assert.equal((await trailers)[0]['grpc-status'], '0');
  const [head] = await once(call(true), 'response');
  assert.equal(head['grpc-status'], '5');
  const third = call(false);
  await once(third, 'data');
  const CANCEL = 8;
  third.close(CANCEL);
  assert.equal(await canceled.promise, CANCEL);
});
