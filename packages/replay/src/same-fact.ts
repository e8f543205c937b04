import { isDeepStrictEqual } from 'node:util';
import { isObject } from '@hopline/a2a';
import { type CallStarted, workingCall } from '@hopline/events';

/**
 * Whether a decided value is the stored one, as JSON. The order of members has no meaning. A call may be stored without its content,
 * because relays of an earlier version did not know it.
 */
export function isSameFact(stored: unknown, decided: unknown): boolean {
  const json = JSON.stringify(decided);
  if (JSON.stringify(stored) === json) return true;
  if (stored === undefined || json === undefined) return false;
  const value: unknown = JSON.parse(json);
  if (isDeepStrictEqual(stored, value)) return true;
  return isCall(value) && isCall(stored) && workingCall(stored) === undefined && isDeepStrictEqual(stored, withoutContent(value));
}

function isCall(value: unknown): value is CallStarted {
  return isObject(value) && value.kind === 'call.started';
}

function withoutContent({ presentation: _p, message: _m, metadata: _md, resume: _r, trace: _t, ...call }: CallStarted): unknown {
  return call;
}
