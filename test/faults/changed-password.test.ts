import { test } from 'node:test';
import { freePort } from '@hopline/local-cluster';
import { until } from '../kit/until.ts';
import { ServiceProcess } from '../support/cluster/service-process.ts';
import { startNats } from '../support/nats/nats-server.ts';

const passwordOf = (password: string) => `authorization { user: relay, password: ${password} }`;

test('a service ends when NATS keeps rejecting its password, and one with the new password starts', {
  timeout: 120_000,
}, async t => {
  const nats = await startNats({ config: passwordOf('before') });
  t.after(() => nats.stop());
  const env = { NATS_URL: nats.url, NATS_USER: 'relay', HOPLINE_NATS_REJECTED_MS: '1000' };
  const relayWith = async (password: string) => {
    const spec = { service: 'relay', instance: 'relay-1', env: { ...env, NATS_PASSWORD: password } };
    const relay = new ServiceProcess(spec, await freePort());
    t.after(() => relay.hasEnded || relay.kill());
    await relay.start();
    return relay;
  };
  const relay = await relayWith('before');
  await nats.reload(passwordOf('after'));
  await until(() => relay.hasEnded);
  // The end of a process may be seen before its last line.
  await until(() => /NATS has rejected the credentials of user relay for 1 s/.test(relay.output));
  await relayWith('after');
});
