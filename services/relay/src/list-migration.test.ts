import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogUnavailable } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { until } from '../../../test/kit/until.ts';
import { relayOn } from './relay.test-kit.ts';

for (const { error, isLogged } of [
  { error: new TypeError('extent is undefined'), isLogged: true },
  { error: new LogUnavailable('no leader'), isLogged: false },
])
  test(`a check of the bucket of the lists that fails with ${error.name} is repeated, and ${isLogged ? 'logged' : 'not logged'}`, async () => {
    const lines: { msg: string; level: string }[] = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
    const logger = createLogger({ service: 'relay', instance: 'test', level: 'warn', destination });
    const log = createMemoryLog().another();
    const { extent } = log.taskLists;
    let checks = 0;
    log.taskLists.extent = () => {
      checks += 1;
      return checks === 1 ? extent.call(log.taskLists) : Promise.reject(error);
    };
    const relay = await relayOn(log, { logger, listsCheckMs: 5 });
    await until(() => checks >= 4);
    await relay.stop();
    const logged = lines.filter(({ msg }) => msg === 'the bucket of the task lists could not be checked').length;
    assert.equal(logged >= 2, isLogged, `${logged} lines`);
    if (!isLogged) assert.equal(logged, 0);
  });
