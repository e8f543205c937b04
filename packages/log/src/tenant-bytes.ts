import { isSameOwner, type Owner } from '@hopline/events';
import type { KeyValue } from './key-value.ts';
import type { StoredSpan, TenantBytes } from './stored-span.ts';
import { keyToken, type TaskListValue } from './task-lists.ts';

/** Number of spans of an entry. Retention frees the bytes of a span when its newest record leaves the log. */
export const STORED_SPANS_MAX = 64;

/** Exists once the entries include the tasks that were stored before relays counted. Its key has the form of the others. */
export const TENANT_BYTES_BEGUN = 'begun.0.stored';

/** Undefined without authentication: all tasks then belong to one caller, and there is no other caller to protect. */
function partyToken(owner: Owner | undefined): string | undefined {
  if (owner === undefined || isSameOwner(owner, undefined)) return undefined;
  const { tenant, subject } = owner;
  return tenant === undefined ? keyToken('stored', null, subject ?? null) : keyToken('stored', tenant);
}

/** The key of a tenant, or of a caller without a tenant. Undefined without authentication. */
export function tenantBytesKey(owner: Owner | undefined, group: number): string | undefined {
  const party = partyToken(owner);
  return party && `${party}.${group}.stored`;
}

/** All entries of a tenant, or of a caller without a tenant. Undefined without authentication. */
export function tenantBytesFilter(owner: Owner): string | undefined {
  const party = partyToken(owner);
  return party && `${party}.*.stored`;
}

export const groupOfTenantBytes = (key: string): number => Number(key.split('.')[1]);

export const isTenantBytes = (value: TaskListValue): value is TenantBytes => 'stored' in value;

/** Bytes of the spans whose newest record the log still has. */
export function bytesFrom(spans: readonly StoredSpan[], firstSeq: number): number {
  return spans.reduce((sum, [seq, bytes]) => (seq >= firstSeq ? sum + bytes : sum), 0);
}

/** Joins spans in the order of their sequences. Above STORED_SPANS_MAX, neighbors with few bytes become one span. */
export function joinSpans(...all: (readonly StoredSpan[])[]): StoredSpan[] {
  const spans = all.flat().sort(([one], [other]) => one - other);
  const pairOf = (at: number) => spans[at]![1] + spans[at + 1]![1];
  while (spans.length > STORED_SPANS_MAX) {
    // Merges the two neighbors with the fewest bytes, so that all spans stay about equally large.
    let smallest = 0;
    for (let at = 1; at + 1 < spans.length; at += 1) if (pairOf(at) < pairOf(smallest)) smallest = at;
    spans.splice(smallest, 2, [spans[smallest + 1]![0], pairOf(smallest)]);
  }
  return spans;
}

/** Replaces the spans of an entry. Rejects with LogConflict if another process has changed the entry in the meantime. */
export async function changeSpans(
  lists: KeyValue<TaskListValue>,
  key: string,
  change: (spans: readonly StoredSpan[]) => StoredSpan[],
): Promise<void> {
  const found = await lists.get(key);
  const value: TenantBytes = {
    v: 1,
    stored: change(found !== undefined && isTenantBytes(found.value) ? found.value.stored : []),
  };
  if (found === undefined) await lists.create(key, value);
  else await lists.update(key, value, found.revision);
}
