import { nuid } from '@nats-io/nats-core';

/** Ids of nats.js have upper and lower case letters. */
const READER_NAME = /^hopline-[0-9A-Za-z]{22}$/;

/** A new name for a consumer that exists only as long as its reader. */
export function readerName(): string {
  return `hopline-${nuid.next()}`;
}

export function isReaderName(name: string): boolean {
  return READER_NAME.test(name);
}
