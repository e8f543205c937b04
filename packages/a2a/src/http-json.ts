import { A2AError, errorInfos } from './errors.ts';
import { isDeeperThan, isObject, JSON_DEPTH_MAX, type JsonObject } from './json-value.ts';

/** Media type of the HTTP+JSON binding ([A2A 1.0] 11.1); `application/json` is taken as well. */
export const A2A_JSON_TYPE = 'application/a2a+json';

/** An error as the HTTP+JSON binding writes it: google.rpc.Status in JSON ([A2A 1.0] 11.6, https://google.aip.dev/193). */
export type HttpJsonFailure = { error: { code: number; status: string; message: string; details: unknown[] } };

/** `status`: the HTTP status that goes with it, where that is not the one of the catalogue. */
export function httpJsonFailure(error: A2AError, status: number = error.row.http): HttpJsonFailure {
  return { error: { code: status, status: error.row.grpc, message: error.message, details: errorInfos(error) } };
}

const NUMBERS = ['historyLength', 'pageSize'];
const FLAGS = ['includeArtifacts'];

/**
 * Query parameters as params ([A2A 1.0] 11.5): decimal strings become numbers, `true` and `false` flags, an empty value is an absent one. What does not fit stays a string,
 * and the schema of the operation names it. `query`: values as they came, several of one name as an array.
 */
export function paramsOfQuery(query: unknown): JsonObject {
  if (!isObject(query)) return {};
  const given = Object.entries(query).filter(([, value]) => value !== '');
  return Object.fromEntries(given.map(([name, value]) => [name, typeof value === 'string' ? typed(name, value) : value]));
}

/** A body as params: no body, or null, is one without members; `path` counts more than the same in the body. What is no object is left to the schema. Throws INVALID_PARAMS. */
export function paramsOfBody(body: unknown, path: JsonObject): unknown {
  if (isDeeperThan(body, JSON_DEPTH_MAX))
    throw new A2AError('INVALID_PARAMS', { detail: `nested deeper than ${JSON_DEPTH_MAX} levels` });
  if (body === undefined || body === null) return path;
  return isObject(body) ? { ...body, ...path } : body;
}

function typed(name: string, value: string): unknown {
  const jsonName = name.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
  if (NUMBERS.includes(jsonName) && /^-?\d{1,15}$/.test(value)) return Number(value);
  if (FLAGS.includes(jsonName) && (value === 'true' || value === 'false')) return value === 'true';
  return value;
}
