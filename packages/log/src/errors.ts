/** Another writer was first, and nothing of this write was stored. */
export class LogConflict extends Error {
  override readonly name = 'LogConflict';
}

/**
 * The log was unreachable or had no leader for longer than the caller's timeout. The write may or may not be stored: retry with
 * the same id.
 */
export class LogUnavailable extends Error {
  override readonly name: string = 'LogUnavailable';
}

/** A stream or bucket has no room. Nothing of this write was stored. A retry may succeed after other entries have been removed. */
export class LogFull extends LogUnavailable {
  override readonly name: string = 'LogFull';
}

/**
 * The log was restored to an earlier state: acknowledged records are gone, and others may have replaced them. The state that a reader has
 * folded may differ from the log, so the reader starts again from the beginning.
 */
export class HistoryLost extends LogUnavailable {
  override readonly name = 'HistoryLost';
}

/** The queue has room, but not for more work of this tenant. */
export class TenantFull extends LogFull {
  override readonly name = 'TenantFull';
}

/**
 * The user of the connection lacks permission to write or to receive answers. A retry helps only after an operator has granted the
 * permission.
 */
export class LogDenied extends LogUnavailable {
  override readonly name = 'LogDenied';
}

/** Thrown by a handler when a later delivery of its item is being processed. The item is neither acknowledged nor requeued. */
export class Superseded extends Error {
  override readonly name = 'Superseded';
}

/**
 * Thrown by a handler when its process is stopping and the item is unharmed. The item is requeued at once, and the delivery does
 * not count as an attempt.
 */
export class Requeued extends Error {
  override readonly name = 'Requeued';
}

/** The record is larger than `recordBytesMax`; nothing was stored. */
export class RecordTooLarge extends Error {
  override readonly name = 'RecordTooLarge';
}

/** The input could not be read by readers of the log. It was not stored, and a retry would produce the same input. */
export class InputUnreadable extends Error {
  override readonly name = 'InputUnreadable';
}

/**
 * The newest record of the task was written by a later version of Hopline. If a writer mistook an older record for the newest one, it would
 * pass the fence with an outdated aggregate.
 */
export class LaterVersion extends Error {
  override readonly name = 'LaterVersion';
}

/** The server or its streams do not match this Hopline: shard count, replicas, server version. The service must not start. */
export class LogMismatch extends Error {
  override readonly name = 'LogMismatch';
}

/**
 * Reason for aborting a reader that has finished. It is one shared object, because `abort()` without a reason creates an error with a stack
 * trace each time.
 */
export const NO_LONGER_NEEDED = new DOMException('no longer needed', 'AbortError');
