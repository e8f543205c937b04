import { Type } from '@hopline/a2a/schema-type';
import type { Deltas, StatusMeaning } from '@hopline/agent-a2a';
import { authHeader } from '@hopline/agent-a2a/credential-headers';
import { AGENT_EXTENSIONS_MAX } from '@hopline/agent-a2a/limits';
import type { Static } from 'typebox';
import { httpUrl, ms, oneOf, strings, text, variable } from './entry-fields.ts';

/** Fields of adapter `a2a`: how to read a remote agent, and how to authenticate to it. */

const DELTAS = ['incremental', 'cumulative', 'whole'] as const satisfies readonly Deltas[];
const STATUS_TEXTS = ['answer', 'progress', 'hidden'] as const satisfies readonly StatusMeaning[];
const EVENT_BYTES_MAX = 64 * 1024 * 1024;
const HEADERS_MAX = 64;
/** RFC 9110, 5.6.2. */
const HEADER_NAME = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$";

const auth = Type.Union(
  [
    Type.Object({ bearerEnv: variable }, { additionalProperties: false }),
    Type.Object(
      { apiKeyEnv: variable, header: Type.Optional(Type.String({ pattern: HEADER_NAME })) },
      { additionalProperties: false },
    ),
  ],
  { reason: 'must be {"bearerEnv": "VARIABLE"} or {"apiKeyEnv": "VARIABLE", "header": "x-api-key"}' },
);

const tls = Type.Object(
  {
    caFile: Type.Optional(text(4_096)),
    certFile: Type.Optional(text(4_096)),
    keyFile: Type.Optional(text(4_096)),
  },
  { additionalProperties: false },
);

export const a2aFields = {
  url: httpUrl,
  deltas: Type.Optional(Type.Enum([...DELTAS], oneOf(DELTAS))),
  text: Type.Optional(Type.Enum([...STATUS_TEXTS], oneOf(STATUS_TEXTS))),
  headers: Type.Optional(strings),
  /** Headers whose values are environment variables. */
  headersEnv: Type.Optional(Type.Record(Type.String({ pattern: HEADER_NAME }), variable, { maxProperties: HEADERS_MAX })),
  auth: Type.Optional(auth),
  extensions: Type.Optional(
    Type.Array(
      // All extensions are sent in one comma-separated header.
      Type.String({
        pattern: '^[!-+\\-./0-~]{1,1024}$',
        reason: 'must be a URI of at most 1024 characters, without spaces and commas',
      }),
      { maxItems: AGENT_EXTENSIONS_MAX },
    ),
  ),
  tls: Type.Optional(tls),
  firstEventMsMax: ms,
  silenceMsMax: ms,
  totalMsMax: ms,
  eventBytesMax: Type.Optional(Type.Integer({ minimum: 1_024, maximum: EVENT_BYTES_MAX })),
};

type A2AFields = Static<ReturnType<typeof Type.Object<typeof a2aFields>>>;

/** Checks what a schema cannot express: fields that require each other, or that cannot be combined. */
export function checkA2A(label: string, { url, headers = {}, headersEnv = {}, auth, tls }: A2AFields): void {
  const names = new Set(Object.keys(headers).map(name => name.toLowerCase()));
  for (const name of Object.keys(headersEnv)) {
    if (!new RegExp(HEADER_NAME).test(name)) throw new Error(`${label}: headersEnv has an invalid header name`);
    if (names.has(name.toLowerCase())) throw new Error(`${label}: headersEnv.${name} is also in headers`);
    names.add(name.toLowerCase());
  }
  if (auth !== undefined && names.has(authHeader(auth))) throw new Error(`${label}: auth and another field set the same header`);
  if (tls === undefined) return;
  if (!/^https:/i.test(url)) throw new Error(`${label}: tls requires a url that begins with https://`);
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined))
    throw new Error(`${label}: tls needs certFile and keyFile together; one is missing`);
  if (tls.caFile === undefined && tls.certFile === undefined) throw new Error(`${label}: tls must name a file`);
}
