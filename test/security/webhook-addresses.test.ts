import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openServers } from './open-servers.ts';

/** URLs that lead a notifier to an address that is not public, or to a host other than the one they seem to name. */
const FORBIDDEN = [
  'http://hooks.example/',
  'ftp://hooks.example/',
  'file:///etc/passwd',
  'gopher://127.0.0.1:6379/_x',
  'javascript:alert(1)',
  'data:text/plain,x',
  '//hooks.example/',
  'https://',
  'https://localhost/',
  'https://LOCALHOST./',
  'https://a.localhost/',
  'https://127.0.0.1/',
  'https://127.0.0.1:8000/',
  'https://127.1/',
  'https://127.255.255.254/',
  'https://2130706433/',
  'https://017700000001/',
  'https://0x7f000001/',
  'https://0x7f.0.0.1/',
  'https://0177.0.0.1/',
  'https://127.0.0.1.:443/',
  'https://%31%32%37.0.0.1/',
  'https://１２７.0.0.1/',
  'https://127。0。0。1/',
  'https://①②⑦.0.0.1/',
  'https://127.0.0\u00ad.1/',
  'https://0.0.0.0/',
  'https://0/',
  'https://10.0.0.1/',
  'https://10.255.255.255/',
  'https://172.16.0.1/',
  'https://172.31.255.255/',
  'https://192.168.1.1/',
  'https://169.254.169.254/latest/meta-data/',
  'https://[fd00:ec2::254]/',
  'https://100.64.0.1/',
  'https://100.100.100.200/',
  'https://192.0.0.192/',
  'https://192.0.2.1/',
  'https://198.18.0.1/',
  'https://198.51.100.1/',
  'https://203.0.113.1/',
  'https://224.0.0.1/',
  'https://239.255.255.250/',
  'https://240.0.0.1/',
  'https://255.255.255.255/',
  'https://[::]/',
  'https://[::1]/',
  'https://[0:0:0:0:0:0:0:1]/',
  'https://[::127.0.0.1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:7f00:1]/',
  'https://[::ffff:0:127.0.0.1]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[64:ff9b:1::1]/',
  'https://[2002:7f00:1::]/',
  'https://[2002:a00:1::1]/',
  'https://[2001:0:7f00:1::]/',
  'https://[2001:db8::1]/',
  'https://[fc00::1]/',
  'https://[fdff::1]/',
  'https://[fe80::1]/',
  'https://[fec0::1]/',
  'https://[ff02::1]/',
  'https://[100::1]/',
  'https://user@hooks.example/',
  'https://user:CANARY@hooks.example/',
  'https://127.0.0.1#@hooks.example/',
  'https://hooks.example:22/',
  'https://hooks.example:1023/',
  'https://hooks.example:0/',
  'https://hooks.example:65536/',
  'https://hooks.example /',
];

const PUBLIC = [
  'https://hooks.example/a?b=c',
  'https://HOOKS.example:443/',
  'https://hooks.example:1024/',
  'https://hooks.example\\@127.0.0.1/',
  'https://93.184.215.14/',
  'https://[2606:2800:21f::1]/',
  'https://xn--bcher-kva.example/',
];

test('webhook URLs, as a client sets them', async t => {
  const { urls, log } = await openServers(t);
  const set = async (url: string) => {
    const id = crypto.randomUUID();
    const response = await fetch(urls.ingress, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tasks/pushNotification/set',
        params: { id, pushNotificationConfig: { url, token: 'CANARY' } },
      }),
    });
    const { error } = (await response.json()) as { error?: { code: number; message: string } };
    return { error, stored: await log.pushConfigs.under(id) };
  };
  for (const url of FORBIDDEN)
    await t.test(`refused: ${JSON.stringify(url)}`, async () => {
      const { error, stored } = await set(url);
      assert.equal(error?.code, -32602);
      assert.doesNotMatch(error.message, /CANARY/);
      assert.deepEqual(stored, []);
    });
  for (const url of PUBLIC)
    await t.test(`stored: ${url}`, async () => {
      const { error, stored } = await set(url);
      assert.equal(error, undefined);
      assert.equal(stored.length, 1);
    });
});
