/**
 * The bytes that the records of a tenant take in the facts of one stream group, in the bucket of task lists. Relays add what they append. A
 * server therefore reads only one entry for each stream group, however many tasks the tenant or the cluster has. PROTOCOL.md 7.2.
 */
export type TenantBytes = { v: 1; stored: StoredSpan[] };

/** Bytes of records that are close to each other in the log, and the log sequence of the newest of them. */
export type StoredSpan = [seq: number, bytes: number];
