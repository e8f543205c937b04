/** Somebody else wrote in between: nothing of this write was stored. */
export class LogConflict extends Error {
  override readonly name = 'LogConflict';
}

/** The log could not be reached, or had no leader, for longer than the caller was willing to wait. The write may or may not be stored: retry with the same id. */
export class LogUnavailable extends Error {
  override readonly name = 'LogUnavailable';
}

/** A handler's word that a later delivery of its item is being worked on: it settles nothing, neither done nor given back. */
export class Superseded extends Error {
  override readonly name = 'Superseded';
}

/** A handler's word that its process is about to go, and the item is as good as before: it is given back at once, and the delivery counts as no attempt at it. */
export class Requeued extends Error {
  override readonly name = 'HandedBack';
}

/** The record is larger than `recordBytesMax`; nothing was stored. */
export class RecordTooLarge extends Error {
  override readonly name = 'RecordTooLarge';
}

/** What was found on the server does not fit this Hopline (shard count, replicas, server version): refuse to serve. */
export class LogMismatch extends Error {
  override readonly name = 'LogMismatch';
}
