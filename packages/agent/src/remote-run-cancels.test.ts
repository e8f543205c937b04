import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RemoteRunCancels } from './remote-run-cancels.ts';

const UNREACHABLE = new Error('unreachable');

/** Fails the given number of times, then answers. */
function server(failures: number) {
  const requests: number[] = [];
  return {
    requests,
    request: async () => {
      requests.push(requests.length);
      if (requests.length <= failures) throw UNREACHABLE;
    },
  };
}

test('a cancel is repeated until the server answers, and never afterwards', async () => {
  const cancels = new RemoteRunCancels();
  const { request, requests } = server(2);
  await cancels.cancel('run', request);
  assert.equal(requests.length, 3);
  await cancels.cancel('run', request);
  assert.equal(requests.length, 3);
  cancels.begun('run');
  await cancels.cancel('run', request);
  assert.equal(requests.length, 4, 'a run that was continued is canceled again');
});

test('a run that has already ended is not canceled', async () => {
  const cancels = new RemoteRunCancels();
  const { request, requests } = server(0);
  cancels.ended('run');
  await cancels.cancel('run', request);
  assert.equal(requests.length, 0);
});

test('an ending turn waits only for the first request; a second caller waits for the answer', async () => {
  const cancels = new RemoteRunCancels();
  const { request, requests } = server(1);
  await cancels.begin('run', request);
  assert.equal(requests.length, 1);
  await cancels.cancel('run', () => assert.fail('the run has its series of requests'));
  assert.equal(requests.length, 2);
});

test('a server that ignores a request receives it again, and the cancel fails at its limit', async () => {
  const cancels = new RemoteRunCancels({ msMax: 1_000, tryMsMax: 20 });
  let requests = 0;
  const silent = () => {
    requests += 1;
    return new Promise<void>(() => {});
  };
  const startedMs = performance.now();
  await assert.rejects(cancels.cancel('run', silent), { name: 'TimeoutError' });
  assert.ok(performance.now() - startedMs < 10_000);
  assert.ok(requests > 1);
  await assert.rejects(new RemoteRunCancels({ msMax: 0 }).cancel('run', server(9).request), UNREACHABLE);
});

test('a closed adapter does not repeat requests', async () => {
  const cancels = new RemoteRunCancels();
  const { request, requests } = server(9);
  const canceled = cancels.cancel('run', request);
  cancels.close();
  await assert.rejects(canceled, UNREACHABLE);
  assert.ok(requests.length <= 1);
});
