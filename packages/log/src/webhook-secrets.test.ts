import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PushConfigEntry } from './log.ts';
import { createMemoryLog } from './memory/memory-log.ts';
import { parseSecretsKeys, SECRETS_KEYS_MAX, secretsKeysFrom, withSealedWebhooks } from './webhook-secrets.ts';

const newKey = () => randomBytes(32).toString('base64');
const [first, second] = [newKey(), newKey()];
const keys = (...encoded: string[]) => parseSecretsKeys(encoded.join(), 'HOPLINE_SECRETS_KEY');

const KEY = 't.Yw';
const ENTRY: PushConfigEntry = {
  taskId: 't',
  id: 'c',
  url: 'https://hooks.example/',
  token: 'canary-token',
  authentication: { scheme: 'Bearer', credentials: 'canary-credentials' },
  dialect: '1.0',
  after: 3,
};
const { token: _token, ...NO_TOKEN } = ENTRY;
const NO_SECRETS: PushConfigEntry = { ...NO_TOKEN, authentication: { scheme: 'Bearer' } };

/** Content of the bucket after a write, and a reader of the bucket with other keys. */
async function stored(entry: PushConfigEntry, ...encoded: string[]) {
  const log = createMemoryLog();
  const sealed = withSealedWebhooks(log, encoded.length === 0 ? undefined : keys(...encoded));
  await sealed.pushConfigs.put(KEY, entry);
  const raw = (await log.pushConfigs.get(KEY))!.value;
  const readBy = async (...others: string[]) => {
    const { pushConfigs } = withSealedWebhooks(log, others.length === 0 ? undefined : keys(...others));
    const value = (await pushConfigs.get(KEY))?.value;
    assert.deepEqual((await pushConfigs.under('t'))[0]?.value, value);
    return value;
  };
  return { log, raw, readBy };
}

test('the bucket holds no secret, and a holder of the key reads the entry as it was', async () => {
  for (const entry of [ENTRY, NO_TOKEN, { ...NO_SECRETS, token: 'canary' }]) {
    const { raw, readBy } = await stored(entry, first);
    assert.doesNotMatch(JSON.stringify(raw), /canary/);
    assert.deepEqual({ ...raw, sealed: undefined }, { ...NO_SECRETS, sealed: undefined });
    assert.deepEqual(await readBy(first), entry);
  }
  assert.deepEqual((await stored(NO_SECRETS, first)).raw, NO_SECRETS, 'nothing to seal');
});

test('every write gets a new seal, including create and update', async () => {
  const log = createMemoryLog();
  const { pushConfigs } = withSealedWebhooks(log, keys(first));
  const seals = new Set<string | undefined>();
  const look = async () => seals.add((await log.pushConfigs.get(KEY))?.value.sealed);
  const revision = await pushConfigs.create(KEY, ENTRY);
  await look();
  await pushConfigs.update(KEY, (await pushConfigs.get(KEY))!.value, revision);
  await look();
  await pushConfigs.put(KEY, ENTRY);
  await look();
  assert.equal(seals.size, 3);
  assert.ok(!seals.has(undefined));
});

test('keys can be rotated: a second key first only opens, and later seals', async () => {
  const old = await stored(ENTRY, first);
  assert.deepEqual(await old.readBy(second, first), ENTRY);
  assert.deepEqual(await (await stored(ENTRY, second, first)).readBy(second), ENTRY);
});

test('without a key secrets are stored as plain text; plain entries stay readable with a key', async () => {
  const { raw, readBy } = await stored(ENTRY);
  assert.deepEqual(raw, ENTRY);
  assert.deepEqual(await readBy(first), ENTRY);
});

test('a seal does not open if no key fits, if it was changed, or if it was copied to another entry', async () => {
  const { log, raw, readBy } = await stored(ENTRY, first);
  assert.deepEqual(await readBy(second), raw);
  assert.deepEqual(await readBy(), raw);
  const [version, id, bytes = ''] = raw.sealed!.split('.');
  const flipped = `${bytes.slice(0, 20)}${bytes[20] === 'A' ? 'B' : 'A'}${bytes.slice(21)}`;
  const forgeries: Partial<PushConfigEntry>[] = [
    { url: 'https://evil.example/' },
    { taskId: 'other' },
    { id: 'other' },
    { sealed: [version, id, flipped].join('.') },
    { sealed: [version, id, bytes.slice(0, 20)].join('.') },
    { sealed: [version, id].join('.') },
    { sealed: ['2', id, bytes].join('.') },
    { sealed: [version, 'AAAAAAAA', bytes].join('.') },
    { sealed: '' },
  ];
  for (const forgery of forgeries) {
    await log.pushConfigs.put(KEY, { ...raw, ...forgery });
    assert.deepEqual(await readBy(first), { ...raw, ...forgery }, JSON.stringify(forgery));
  }
});

test('a key is 32 bytes in base64; errors do not quote it', () => {
  assert.equal(keys(Buffer.from(first, 'base64').toString('base64url'))[0]?.id, keys(first)[0]?.id);
  assert.notEqual(keys(first)[0]?.id, keys(second)[0]?.id);
  assert.equal(keys(...Array.from({ length: SECRETS_KEYS_MAX }, newKey)).length, SECRETS_KEYS_MAX);
  assert.throws(() => keys(...Array.from({ length: SECRETS_KEYS_MAX + 1 }, newKey)), /more than 8 keys/);
  for (const wrong of [
    '',
    'canary',
    `${first}A`,
    first.slice(0, -2),
    randomBytes(31).toString('base64'),
    randomBytes(33).toString('base64'),
  ])
    assert.throws(() => keys(first, wrong), { message: 'HOPLINE_SECRETS_KEY: key 2 must be 32 bytes in base64' });
});

test('the key comes from one of two settings', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hopline-secrets-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'secrets.key');
  await writeFile(file, `${first}, ${second}\n`);
  assert.deepEqual(await secretsKeysFrom({ HOPLINE_SECRETS_KEY_FILE: file }), keys(first, second));
  assert.deepEqual(await secretsKeysFrom({ HOPLINE_SECRETS_KEY: first }), keys(first));
  assert.equal(await secretsKeysFrom({}), undefined);
  await assert.rejects(secretsKeysFrom({ HOPLINE_SECRETS_KEY: first, HOPLINE_SECRETS_KEY_FILE: file }), /must not both be set/);
  await assert.rejects(secretsKeysFrom({ HOPLINE_SECRETS_KEY_FILE: join(folder, 'none') }), {
    message: 'HOPLINE_SECRETS_KEY_FILE cannot be read (ENOENT)',
  });
});
