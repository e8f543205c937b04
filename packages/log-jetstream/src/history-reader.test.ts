import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Connection } from './connection.ts';
import type { DirectGets } from './direct-gets.ts';
import { HistoryReader } from './history-reader.ts';

const PAGES_AT_ONCE = 16;

test('a page that has waited too long for its turn is not read, because its caller may have left and would delay others', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { promise: answered, resolve: answer } = Promise.withResolvers<{ messages: []; isLast: true }>();
  let requests = 0;
  const following = () => {
    requests += 1;
    return answered;
  };
  const directGets = { hasBatches: true, following } as unknown as DirectGets;
  const history = new HistoryReader({ replicas: 1 } as unknown as Connection, directGets);
  const read = () => history.readToEnd('STREAM', 'subject', 1).next();
  const first = Array.from({ length: PAGES_AT_ONCE }, read);
  const late = assert.rejects(read(), { name: 'LogUnavailable' });
  await new Promise(resolve => setImmediate(resolve));
  t.mock.timers.tick(20_000);
  await late;
  answer({ messages: [], isLast: true });
  await Promise.all(first);
  assert.equal(requests, PAGES_AT_ONCE);
});
