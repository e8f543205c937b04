import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogUnavailable } from '@hopline/log';
import { AppendHealth, FAILURE_KEPT_MS } from './append-health.ts';
import { LogNames } from './names.ts';

for (const prefix of ['', 'blue']) {
  test(`a stream that stores nothing is unhealthy until it stores something, prefix "${prefix}"`, () => {
    const names = new LogNames(prefix);
    const health = new AppendHealth(
      () => names,
      () => 0,
    );
    const facts = (shard: number) => names.subject(`a2a.log.${shard}.task`);
    const others = [names.subject('a2a.raw.task'), names.subject('a2a.work.agent.a'), `$KV.${names.bucket('hopline_leases')}.x`];
    health.check();
    health.failed(facts(1));
    assert.throws(() => health.check(), LogUnavailable);
    for (const subject of others) health.stored(subject);
    assert.throws(() => health.check(), /^LogUnavailable: (blue_)?A2A_LOG stores no records/);
    health.stored(facts(2));
    health.check();
    for (const subject of others) {
      health.failed(subject);
      health.stored(facts(1));
      assert.throws(() => health.check(), LogUnavailable, subject);
      health.stored(subject);
      health.check();
    }
  });
}

test('with several stream groups, one that stores nothing is unhealthy whatever the others store', () => {
  const health = new AppendHealth(
    () => new LogNames('blue', 4),
    () => 0,
  );
  health.failed('blue.a2a.log.0a.task');
  for (const subject of ['blue.a2a.log.0b.task', 'blue.a2a.raw.0a.task.client']) health.stored(subject);
  assert.throws(() => health.check(), /blue_A2A_LOG_2 stores no records/);
  health.stored('blue.a2a.log.02.other');
  health.check();
});

test('a failure is forgotten when nothing was published for FAILURE_KEPT_MS', () => {
  let now = 0;
  const health = new AppendHealth(
    () => new LogNames(),
    () => now,
  );
  health.failed('a2a.log.1.task');
  now = FAILURE_KEPT_MS - 1;
  assert.throws(() => health.check(), LogUnavailable);
  now = FAILURE_KEPT_MS;
  health.check();
});
