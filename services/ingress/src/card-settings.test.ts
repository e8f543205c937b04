import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ConfigError } from '@hopline/lifecycle';
import { cardFromSettings } from './card-settings.ts';
import { ingressConfig } from './config.ts';

const load = (env: Record<string, string>) => ingressConfig.load(env);
const cardOf = (env: Record<string, string>) => cardFromSettings(load(env), '9.9.9');

async function fileWith(t: TestContext, content: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'card-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'key'), content);
  return join(folder, 'key');
}

test('only configured fields are on the card [S4-1]', async () => {
  assert.deepEqual(await cardOf({}), {
    name: 'Hopline',
    description: 'Agents behind Hopline: every event is logged, any stream can be resumed.',
    version: '9.9.9',
    inputModes: ['text/plain', 'application/json'],
    outputModes: ['text/plain', 'application/json'],
    skills: 'public',
    extended: true,
    streaming: true,
    push: false,
  });
  const card = await cardOf({
    HOPLINE_CARD_VERSION: '2.0',
    HOPLINE_CARD_ORGANIZATION: 'Acme',
    HOPLINE_CARD_ORGANIZATION_URL: 'https://acme.example',
    HOPLINE_CARD_DOCUMENTATION_URL: 'https://acme.example/docs',
    HOPLINE_CARD_ICON_URL: 'https://acme.example/icon.png',
    HOPLINE_CARD_OUTPUT_MODES: 'image/png, text/plain; charset=utf-8,',
    HOPLINE_STREAMING: 'false',
  });
  assert.deepEqual([card.version, card.provider], ['2.0', { organization: 'Acme', url: 'https://acme.example' }]);
  assert.deepEqual([card.documentationUrl, card.iconUrl], ['https://acme.example/docs', 'https://acme.example/icon.png']);
  assert.deepEqual([card.outputModes, card.streaming], [['image/png', 'text/plain; charset=utf-8'], false]);
});

test('contradictory settings are reported all at once', () => {
  const cases: [Record<string, string>, number][] = [
    [{ HOPLINE_CARD_ORGANIZATION: 'Acme' }, 1],
    [{ HOPLINE_CARD_ORGANIZATION_URL: 'https://acme.example' }, 1],
    [{ HOPLINE_CARD_KEY_ID: 'k', HOPLINE_CARD_JKU: 'https://acme.example/jwks' }, 2],
    [{ HOPLINE_CARD_INPUT_MODES: 'text', HOPLINE_CARD_OUTPUT_MODES: ',,,' }, 2],
    [{ HOPLINE_CARD_INPUT_MODES: Array.from({ length: 33 }, () => 'a/b').join(',') }, 1],
  ];
  for (const [env, count] of cases) {
    assert.throws(
      () => load(env),
      (error: unknown) => error instanceof ConfigError && error.faults.length === count,
      JSON.stringify(env),
    );
  }
  assert.ok(load({ HOPLINE_CARD_INPUT_MODES: Array.from({ length: 32 }, () => 'a/b').join(',') }));
});

test('signatures have a jku only when it is certain: a public address at the root, https or loopback', async t => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const file = await fileWith(t, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
  const jkuOf = async (env: Record<string, string>) => {
    const { signer } = await cardOf({ HOPLINE_CARD_KEY_FILE: file, ...env });
    const [signature] = await signer!.sign({ name: 'x' });
    return (JSON.parse(Buffer.from(signature!.protected, 'base64url').toString()) as { jku?: string }).jku;
  };
  const keys = '/.well-known/jwks.json';
  const cases: [publicUrl: string, jku: string | undefined][] = [
    ['https://agents.example', `https://agents.example${keys}`],
    ['https://agents.example:8443/', `https://agents.example:8443${keys}`],
    ['http://127.0.0.1:8000/', `http://127.0.0.1:8000${keys}`],
    ['http://agents.example/', undefined],
    ['https://agents.example/a2a', undefined],
    ['', undefined],
  ];
  for (const [publicUrl, jku] of cases) assert.equal(await jkuOf({ HOPLINE_PUBLIC_URL: publicUrl }), jku, publicUrl);
  const settings = { HOPLINE_PUBLIC_URL: 'https://agents.example/', HOPLINE_CARD_JKU: 'https://keys.example/set' };
  assert.equal(await jkuOf(settings), 'https://keys.example/set');
});

test('the key file creates the signer; an unusable one is reported without its content [S4-5]', async t => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const good = await fileWith(t, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
  const { signer } = await cardOf({ HOPLINE_CARD_KEY_FILE: good, HOPLINE_CARD_KEY_ID: 'k1' });
  assert.deepEqual([signer?.kid, signer?.alg], ['k1', 'EdDSA']);
  await assert.rejects(cardOf({ HOPLINE_CARD_KEY_FILE: '/nowhere/key' }), /HOPLINE_CARD_KEY_FILE cannot be read: ENOENT$/);
  const bad = await fileWith(t, 'PLANTED');
  await assert.rejects(cardOf({ HOPLINE_CARD_KEY_FILE: bad }), (error: Error) => !error.message.includes('PLANTED'));
});
