/*
 * Server capabilities by version, because older servers drop unknown fields silently. Newer features (atomic batches 2.12, fast ingest
 * 2.14) showed no gain when measured, so nothing requires them.
 */

import { LogMismatch } from '@hopline/log';

const VERSION_MIN: Version = [2, 9, 0];
/**
 * Expected-last-subject-sequence on a replicated stream: up to 2.9.20 two writers both succeeded in 347 of 1000 rounds (nats-server #4320),
 * up to 2.10 replicas could diverge (#5644, #6194). A single replica checks it exactly in every version.
 */
const REPLICATED_VERSION_MIN: Version = [2, 11, 0];

/** From this version a stream may begin at a chosen sequence. */
const FIRST_SEQ_VERSION_MIN: Version = [2, 10, 0];

/** From this version a consumer may have a list of subjects. Older servers drop the list and deliver the whole stream. */
const FILTER_LISTS_VERSION_MIN: Version = [2, 10, 0];

/**
 * Accounts that exchange messages. 2.9.10 ends with a stack overflow (`checkForReverseEntries`) when an agent names a reply subject with a wildcard; in 2.10.29
 * and 2.11.0 the same message has no effect (test/integration/log/hostile-login.test.ts).
 */
const AGENT_ACCOUNTS_VERSION_MIN: Version = [2, 10, 0];

/** A stream may have metadata. */
const STREAM_METADATA_VERSION_MIN: Version = [2, 10, 0];

/** One direct get answers with the newest messages of many subjects. Older servers drop the list and answer with nothing. */
const BATCH_GETS_VERSION_MIN: Version = [2, 11, 0];

/** A leader may be asked to hand over to a chosen node. */
const PREFERRED_LEADERS_VERSION_MIN: Version = [2, 11, 0];

type Version = [major: number, minor: number, patch: number];

/** Throws LogMismatch when the server is too old for this number of replicas. */
export function requireServer(version: string, replicas: number): void {
  const found = parseVersion(version);
  if (!found || compare(found, VERSION_MIN) < 0) {
    throw new LogMismatch(`NATS server ${version} is too old: use ${VERSION_MIN.join('.')} or newer`);
  }
  if (replicas > 1 && compare(found, REPLICATED_VERSION_MIN) < 0) {
    throw new LogMismatch(
      `NATS server ${version} does not check the expected sequence of a replicated stream exactly: ` +
        `${replicas} replicas need ${REPLICATED_VERSION_MIN.join('.')} or newer; use 1 replica or a newer server`,
    );
  }
}

export function hasFirstSeq(version: string): boolean {
  return isAtLeast(version, FIRST_SEQ_VERSION_MIN);
}

export function hasFilterLists(version: string): boolean {
  return isAtLeast(version, FILTER_LISTS_VERSION_MIN);
}

export function hasPreferredLeaders(version: string): boolean {
  return isAtLeast(version, PREFERRED_LEADERS_VERSION_MIN);
}

export function hasStreamMetadata(version: string): boolean {
  return isAtLeast(version, STREAM_METADATA_VERSION_MIN);
}

/** Whether agents may have accounts of their own. */
export function hasAgentAccounts(version: string): boolean {
  return isAtLeast(version, AGENT_ACCOUNTS_VERSION_MIN);
}

export function hasBatchGets(version: string): boolean {
  return isAtLeast(version, BATCH_GETS_VERSION_MIN);
}

function isAtLeast(version: string, least: Version): boolean {
  const found = parseVersion(version);
  return found !== undefined && compare(found, least) >= 0;
}

/** `2.15.0-dev` counts as 2.15.0. */
function parseVersion(text: string): Version | undefined {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(text);
  return match ? [Number(match[1]), Number(match[2]), Number(match[3])] : undefined;
}

function compare(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
