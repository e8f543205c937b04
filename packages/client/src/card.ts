import { isObject, type JsonObject } from '@hopline/a2a';
import { AGENT_CARD_PATHS, cardFindings, decodeAgentCard, type RemoteAgent } from '@hopline/agent-card';
import type { CardKeyOf } from '@hopline/agent-card/verify';
import { FailedTry } from './failed-try.ts';
import type { CallOptions } from './notice.ts';
import { parseJson } from './parse-json.ts';
import { bodyText } from './read-body.ts';
import { notA2A, type RequestOptions, type Transport } from './transport.ts';

/** An agent card, and whether its signature was verified. */
export type Card = {
  /** The card as received. A verified card has only the part that the signature covers. */
  json: JsonObject;
  agent: RemoteAgent;
  /** URL of the card. */
  url: string;
  /** Deviations of the card from the specification: at most 16 sentences, each with the path of a member. */
  findings: string[];
  /** Present on a verified card. `whole`: the signature covers every received field, not only those of A2A 1.0. */
  signature?: { kid: string; whole: boolean };
};

/** Options of `card`. */
export type CardOptions = CallOptions & {
  /**
   * Returns the public key for a key id; the card must be signed by one of these keys. `jku` is the card's own, untrusted claim.
   */
  keyOf?: CardKeyOf | undefined;
};

/** Reads the card at the root of the server's origin, at the path of A2A 0.3 and later, then at the older one. */
export async function readCard(transport: Transport, options: RequestOptions): Promise<Card> {
  const [path, older] = AGENT_CARD_PATHS.map(one => new URL(one, transport.url)) as [URL, URL];
  const response = await transport.get(path, options).catch(thrown => {
    if (thrown instanceof FailedTry && thrown.error.code === 'INVALID_AGENT_RESPONSE') return transport.get(older, options);
    throw thrown;
  });
  const json = parseJson(await bodyText(response, { silenceMsMax: options.headMsMax, signal: options.signal }));
  if (!isObject(json)) throw notA2A('the agent card is not a JSON object');
  return cardOf(json, response.url || path.href);
}

/** Throws INVALID_AGENT_RESPONSE when no signature of the card is valid under a key of `keyOf`. */
export async function verifiedCard({ json, url }: Card, keyOf: CardKeyOf): Promise<Card> {
  // Loaded here, because it takes a library of cryptography with it, and most clients and commands verify no card.
  const { verifyAgentCard } = await import('@hopline/agent-card/verify');
  const { signed, kid, whole } = await verifyAgentCard(json, keyOf);
  return { ...cardOf(signed, url), signature: { kid, whole } };
}

function cardOf(json: JsonObject, url: string): Card {
  return { json, agent: decodeAgentCard(json, url), url, findings: cardFindings(json) };
}
