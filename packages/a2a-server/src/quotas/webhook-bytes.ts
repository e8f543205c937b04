import type { PushConfigEntry } from '@hopline/log';

/** Bytes of an entry besides its key and its value: the name of the bucket, and headers. */
const OVERHEAD_BYTES = 96;
/** Base64, in which secrets are stored when they are encrypted, has a third more bytes. */
const SEALED_SHARE = 1 / 3;

/** Bytes of a webhook in its bucket. For one whose secrets are still to be encrypted, a few bytes more or less. */
export function webhookBytes(key: string, entry: PushConfigEntry): number {
  const { token, authentication } = entry;
  const { credentials } = authentication ?? {};
  const secrets = token === undefined && credentials === undefined ? 0 : jsonBytes({ token, credentials });
  return OVERHEAD_BYTES + key.length + jsonBytes(entry) + Math.ceil(secrets * SEALED_SHARE);
}

function jsonBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}
