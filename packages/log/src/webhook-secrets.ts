import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Entry, KeyValue } from './key-value.ts';
import type { Log, PushConfigEntry } from './log.ts';

const KEY_BYTES = 32;
const KEY_FORM = /^[A-Za-z0-9+/_-]{43}=?$/;
/** Maximum keys in one setting: the current one and earlier ones. */
export const SECRETS_KEYS_MAX = 8;

/** Settings of the services that store and use secrets of webhooks. */
export const SECRETS_SETTINGS = {
  HOPLINE_SECRETS_KEY: {
    type: 'string',
    optional: true,
    min: 1,
    max: 1_024,
    secret: true,
    doc: `Encrypts tokens and credentials of webhooks in NATS: 32 bytes in base64 (\`openssl rand -base64 32\`), the same at every ingress and notifier. Up to ${SECRETS_KEYS_MAX} separated by commas: the first encrypts, all decrypt. Default: they are stored in plain text.`,
  },
  HOPLINE_SECRETS_KEY_FILE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 4_096,
    doc: 'File with the value of HOPLINE_SECRETS_KEY, read at start. Set one of the two.',
  },
} as const;

type SecretsSettings = { HOPLINE_SECRETS_KEY?: string | undefined; HOPLINE_SECRETS_KEY_FILE?: string | undefined };

/** The keys of the setting. The first one encrypts, and any of them decrypts. */
type SecretsKeys = readonly { id: string; key: Buffer }[];

/** Undefined if no key is set. Rejects with an Error of one sentence that does not quote a key. */
export async function secretsKeysFrom(settings: SecretsSettings): Promise<SecretsKeys | undefined> {
  const { HOPLINE_SECRETS_KEY: value, HOPLINE_SECRETS_KEY_FILE: file } = settings;
  if (file === undefined) return value === undefined ? undefined : parseSecretsKeys(value, 'HOPLINE_SECRETS_KEY');
  if (value !== undefined) throw new Error('HOPLINE_SECRETS_KEY and HOPLINE_SECRETS_KEY_FILE must not both be set');
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`HOPLINE_SECRETS_KEY_FILE cannot be read (${error.code})`);
  });
  return parseSecretsKeys(text, 'HOPLINE_SECRETS_KEY_FILE');
}

/** Parses the keys of a setting. `setting`: its name, for errors. */
export function parseSecretsKeys(text: string, setting: string): SecretsKeys {
  const keys = text.split(',').map(one => one.trim());
  if (keys.length > SECRETS_KEYS_MAX) throw new Error(`${setting} has more than ${SECRETS_KEYS_MAX} keys`);
  return keys.map((encoded, index) => {
    if (!KEY_FORM.test(encoded)) throw new Error(`${setting}: key ${index + 1} must be ${KEY_BYTES} bytes in base64`);
    const key = Buffer.from(encoded, 'base64');
    // A prefix of the key's hash, which identifies the key without revealing it.
    return { id: createHash('sha256').update('hopline secrets key ').update(key).digest('base64url').slice(0, 8), key };
  });
}

const ALGORITHM = 'aes-256-gcm';
/** NIST SP 800-38D 8.2.2: random, so that processes need no common counter. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = '1';

type Secrets = { token?: string; credentials?: string };

/**
 * The same log, with push configurations sealed in the bucket, so that a reader of the bucket or of its backup cannot see a token. A seal
 * belongs to one task, configuration and URL. A copy of it does not open under another URL, to which the notifier would otherwise send the
 * secrets. Without keys, secrets are stored as plain text. A sealed entry that no key can open has `sealed` and no secrets; plain entries
 * stay readable. `watch` yields changes sealed.
 */
export function withSealedWebhooks(log: Log, keys: SecretsKeys | undefined): Log {
  const { pushConfigs: bucket } = log;
  const shown = (entry: Entry<PushConfigEntry>) => ({ ...entry, value: open(entry.value, keys ?? []) });
  const stored = (value: PushConfigEntry) => (keys?.[0] === undefined ? value : seal(value, keys[0]));
  const pushConfigs: KeyValue<PushConfigEntry> = {
    get: async key => {
      const entry = await bucket.get(key);
      return entry && shown(entry);
    },
    under: async prefix => (await bucket.under(prefix)).map(shown),
    keysUnder: prefix => bucket.keysUnder(prefix),
    match: async filters => (await bucket.match(filters)).map(shown),
    count: filter => bucket.count(filter),
    put: (key, value) => bucket.put(key, stored(value)),
    create: (key, value) => bucket.create(key, stored(value)),
    update: (key, value, revision) => bucket.update(key, stored(value), revision),
    delete: key => bucket.delete(key),
    purge: (key, revision) => bucket.purge(key, revision),
    revision: () => bucket.revision(),
    extent: () => bucket.extent(),
    watch: signal => bucket.watch(signal),
  };
  return { ...log, pushConfigs };
}

function seal(entry: PushConfigEntry, { id, key }: SecretsKeys[number]): PushConfigEntry {
  const { token, authentication, sealed: _sealed, ...rest } = entry;
  const { credentials, ...named } = authentication ?? { scheme: '' };
  const shown = { ...rest, ...(authentication && { authentication: named }) };
  if (token === undefined && credentials === undefined) return shown;
  const secrets: Secrets = { ...(token !== undefined && { token }), ...(credentials !== undefined && { credentials }) };
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(bindingOf(entry, id));
  const text = Buffer.concat([cipher.update(JSON.stringify(secrets), 'utf8'), cipher.final()]);
  const bytes = Buffer.concat([nonce, text, cipher.getAuthTag()]);
  return { ...shown, sealed: [VERSION, id, bytes.toString('base64url')].join('.') };
}

function open(entry: PushConfigEntry, keys: SecretsKeys): PushConfigEntry {
  if (entry.sealed === undefined) return entry;
  const [version, id = '', encoded = ''] = entry.sealed.split('.');
  const key = version === VERSION ? keys.find(one => one.id === id)?.key : undefined;
  const secrets = key && decrypt(Buffer.from(encoded, 'base64url'), key, bindingOf(entry, id));
  if (secrets === undefined) return entry;
  const { sealed: _sealed, authentication, ...rest } = entry;
  const { token, credentials } = secrets;
  return {
    ...rest,
    ...(token !== undefined && { token }),
    ...(authentication && { authentication: { ...authentication, ...(credentials !== undefined && { credentials }) } }),
  };
}

/** Undefined if the bytes were changed, or were made with another key or for another entry. */
function decrypt(bytes: Buffer, key: Buffer, binding: Buffer): Secrets | undefined {
  try {
    const [nonce, tag] = [bytes.subarray(0, NONCE_BYTES), bytes.subarray(-TAG_BYTES)];
    const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES }).setAAD(binding).setAuthTag(tag);
    const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    return JSON.parse(text.toString('utf8')) as Secrets;
  } catch {
    return undefined;
  }
}

/** The entry to which a seal belongs. */
function bindingOf({ taskId, id, url }: PushConfigEntry, keyId: string): Buffer {
  return Buffer.from(JSON.stringify([VERSION, keyId, taskId, id, url]));
}
