import { type A2AError, errorDetails } from './errors.ts';
import { isObject, type JsonObject } from './json-value.ts';

/** Media type of the HTTP+JSON binding ([A2A 1.0] 11.1); `application/json` is accepted too. */
export const A2A_JSON_TYPE = 'application/a2a+json';

/** An error of the HTTP+JSON binding: google.rpc.Status in JSON ([A2A 1.0] 11.6, https://google.aip.dev/193). */
export type HttpJsonFailure = { error: { code: number; status: string; message: string; details: unknown[] } };

/** `status`: the HTTP status, if it differs from the catalogue's. */
export function httpJsonFailure(error: A2AError, status: number = error.row.http): HttpJsonFailure {
  return { error: { code: status, status: error.row.grpc, message: error.message, details: errorDetails(error) } };
}

const NUMBERS = ['historyLength', 'timelineLength', 'pageSize', 'minDurationMs'];
const FLAGS = ['includeArtifacts'];

/**
 * Query parameters as params ([A2A 1.0] 11.5): decimal strings become numbers, `true` and `false` booleans, an empty value is
 * absent. Other values stay strings, and the schema of the operation refuses them by name. `query`: values as received,
 * repeated names as an array.
 */
export function paramsOfQuery(query: unknown): JsonObject {
  if (!isObject(query)) return {};
  const given = Object.entries(query).filter(([, value]) => value !== '');
  return Object.fromEntries(given.map(([name, value]) => [name, typeof value === 'string' ? typed(name, value) : value]));
}

/**
 * A body as params. No body and null mean no members; members of `path` override the body. A body that is not an object is left to
 * the schema.
 */
export function paramsOfBody(body: unknown, path: JsonObject): unknown {
  if (body === undefined || body === null) return path;
  return isObject(body) ? { ...body, ...path } : body;
}

function typed(name: string, value: string): unknown {
  const jsonName = name.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
  if (NUMBERS.includes(jsonName) && /^-?\d{1,15}$/.test(value)) return Number(value);
  if (FLAGS.includes(jsonName) && (value === 'true' || value === 'false')) return value === 'true';
  return value;
}
