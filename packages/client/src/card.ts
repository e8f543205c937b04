import { isObject, type JsonObject } from '@hopline/a2a';
import { AGENT_CARD_PATHS, decodeAgentCard, type RemoteAgent } from '@hopline/agent-card';
import { type CardKeyOf, verifyAgentCard } from '@hopline/agent-card/verify';
import { FailedTry } from './failed-try.ts';
import type { CallOptions } from './notice.ts';
import { parseJson } from './parse-json.ts';
import { textOf } from './read-body.ts';
import { noA2A, type RequestOptions, type Transport } from './transport.ts';

/** An agent card, and what of it can be relied on whoever wrote it. */
export type Card = {
  /** As the server sent it; of a verified card what the signature covers, and nothing else. */
  json: JsonObject;
  agent: RemoteAgent;
  /** Where it was found. */
  url: string;
  /** Only of a verified card. `whole`: the signature covers all that the server sent, not only the fields of A2A 1.0. */
  signature?: { kid: string; whole: boolean };
};

export type CardOptions = CallOptions & {
  /** Public keys by their ids: the card must be signed by one of them. `jku` is where the card says its keys are, which anybody can write. */
  keyOf?: CardKeyOf;
};

/** Reads the card at the root of the server's origin, at the path of today, else at the older one (C-13). */
export async function readCard(transport: Transport, options: RequestOptions): Promise<Card> {
  const [path, older] = AGENT_CARD_PATHS.map(one => new URL(one, transport.url)) as [URL, URL];
  const response = await transport.get(path, options).catch(thrown => {
    if (thrown instanceof FailedTry && thrown.error.code === 'INVALID_AGENT_RESPONSE') return transport.get(older, options);
    throw thrown;
  });
  const json = parseJson(await textOf(response, options.headMsMax));
  if (!isObject(json)) throw noA2A('the agent card is no JSON object');
  return cardOf(json, response.url || path.href);
}

/** Throws INVALID_AGENT_RESPONSE when no signature of the card is valid under a key that `keyOf` knows. */
export async function verifiedCard({ json, url }: Card, keyOf: CardKeyOf): Promise<Card> {
  const { signed, kid, whole } = await verifyAgentCard(json, keyOf);
  return { ...cardOf(signed, url), signature: { kid, whole } };
}

function cardOf(json: JsonObject, url: string): Card {
  return { json, agent: decodeAgentCard(json, url), url };
}
