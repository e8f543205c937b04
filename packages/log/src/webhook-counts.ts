import type { Owner } from '@hopline/events';
import type { Entry, KeyValue } from './key-value.ts';
import type { PushConfigEntry } from './log.ts';
import { keyToken } from './task-lists.ts';

/**
 * Each webhook has a second entry in its bucket, with the same age limit, whose key begins with the tenant of its owner and contains its
 * bytes. So a server can count the webhooks of a caller and its tenant by reading only key names, however many other webhooks there are.
 * PROTOCOL.md 7.4.
 *
 * Key: `=<tenant>.<owner>=<bytes in base 36>=<task id>=<base64url of the configuration id>`. No task id contains `=`. A caller without a tenant is a
 * tenant of its own.
 */
const COUNT_KEY = /^=[\w-]+\.([\w-]+)=([0-9a-z]+)=/;
const RADIX = 36;
/** The entry has no content, because only its key is read. */
const COUNT_ENTRY = { v: 1 };

/**
 * Bytes of a webhook in addition to its key and its value: the name of the bucket, headers, and the count entry without the key of the
 * webhook.
 */
const OVERHEAD_BYTES = 290;
/** Encrypted secrets are stored in base64, which takes a third more bytes. */
const SEALED_SHARE = 1 / 3;

/** Number of webhooks, and their bytes. */
export type WebhookUsage = { entries: number; bytes: number };

/** Whether a key in the bucket of webhooks is that of a count entry. */
export const isWebhookCountKey = (key: string): boolean => key.startsWith('=');

function tokensOf({ tenant, subject }: Owner): { tenant: string; owner: string } {
  const owner = keyToken('webhooks', tenant ?? null, subject ?? null);
  return { tenant: tenant === undefined ? owner : keyToken('webhooks', tenant), owner };
}

/** `key`, `bytes`: of the webhook. */
export function webhookCountKey(owner: Owner, key: string, bytes: number): string {
  const tokens = tokensOf(owner);
  return `=${tokens.tenant}.${tokens.owner}=${bytes.toString(RADIX)}=${key.replace('.', '=')}`;
}

/** Bytes of a webhook and its count entry in their bucket. The number is off by a few bytes if the secrets are still to be encrypted. */
export function webhookBytes(key: string, entry: PushConfigEntry): number {
  const { token, authentication } = entry;
  const { credentials } = authentication ?? {};
  const secrets = token === undefined && credentials === undefined ? 0 : jsonBytes({ token, credentials });
  return OVERHEAD_BYTES + 2 * key.length + jsonBytes(entry) + Math.ceil(secrets * SEALED_SHARE);
}

function jsonBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}

export async function putWebhookCount(bucket: KeyValue<PushConfigEntry>, countKey: string): Promise<void> {
  await (bucket as KeyValue<unknown>).put(countKey, COUNT_ENTRY);
}

/** Removes the count entry of a webhook, unless it was written after the webhook. Webhooks of earlier versions have none. */
export async function removeWebhookCount(
  bucket: Pick<KeyValue<PushConfigEntry>, 'purge'>,
  { key, value: { owner = {}, bytes }, revision }: Entry<PushConfigEntry>,
): Promise<void> {
  if (bytes !== undefined) await bucket.purge(webhookCountKey(owner, key, bytes), revision);
}

/** The number and bytes of the webhooks of a caller and of its tenant. */
export async function readWebhookUsage(
  bucket: Pick<KeyValue<PushConfigEntry>, 'keysUnder'>,
  caller: Owner,
): Promise<{ owner: WebhookUsage; tenant: WebhookUsage }> {
  const tokens = tokensOf(caller);
  const [owner, tenant] = [
    { entries: 0, bytes: 0 },
    { entries: 0, bytes: 0 },
  ];
  for (const key of await bucket.keysUnder(`=${tokens.tenant}`)) {
    const [, ofOwner, bytes] = COUNT_KEY.exec(key) ?? [];
    if (bytes === undefined) continue;
    for (const usage of ofOwner === tokens.owner ? [owner, tenant] : [tenant]) {
      usage.entries += 1;
      usage.bytes += Number.parseInt(bytes, RADIX);
    }
  }
  return { owner, tenant };
}
