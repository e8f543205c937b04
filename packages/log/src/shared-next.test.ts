import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedNext } from './shared-next.ts';

function controlled() {
  const runs: PromiseWithResolvers<number>[] = [];
  const shared = new SharedNext(() => {
    const run = Promise.withResolvers<number>();
    runs.push(run);
    return run.promise;
  });
  return { runs, shared };
}

test('calls during a run share the next one, which begins when the run has ended', async () => {
  const { runs, shared } = controlled();
  const first = shared.next();
  const [second, third] = [shared.next(), shared.next()];
  assert.equal(runs.length, 1);
  runs[0]!.resolve(1);
  assert.equal(await first, 1);
  runs[1]!.resolve(2);
  assert.deepEqual(await Promise.all([second, third]), [2, 2]);
  assert.equal(runs.length, 2);
});

test('a run that rejects rejects its callers only, and the next one runs', async () => {
  const { runs, shared } = controlled();
  const first = shared.next();
  const second = shared.next();
  runs[0]!.reject(new Error('away'));
  await assert.rejects(first, { message: 'away' });
  runs[1]!.resolve(2);
  assert.equal(await second, 2);
});

test('a call between two runs shares the one that is about to begin, so runs never overlap', async () => {
  const { runs, shared } = controlled();
  const calls: Promise<number>[] = [];
  void shared.next().then(() => calls.push(shared.next()));
  const second = shared.next();
  runs[0]!.resolve(1);
  await new Promise(resolve => setImmediate(resolve));
  assert.equal(runs.length, 2);
  runs[1]!.resolve(2);
  assert.deepEqual(await Promise.all([second, ...calls]).then(results => results.length), 2);
});
