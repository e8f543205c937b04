import { AGENT_CARD_PATHS, decodeAgentCard, type ForeignAgent, type JsonObject } from '@hopline/a2a';
import { FailedTry } from './failed-try.ts';
import { isObject, parseJson } from './json.ts';
import { textOf } from './read-body.ts';
import { noA2A, type RequestOptions, type Transport } from './transport.ts';

/** An agent card: as the server sent it, and what of it can be relied on whoever wrote it. */
export type Card = { json: JsonObject; agent: ForeignAgent };

/** Reads the card at the root of the server's origin, at the path of today, else at the older one (C-13). */
export async function readCard(transport: Transport, options: RequestOptions): Promise<Card> {
  const [path, older] = AGENT_CARD_PATHS.map(one => new URL(one, transport.url)) as [URL, URL];
  const response = await transport.get(path, options).catch(thrown => {
    if (thrown instanceof FailedTry && thrown.error.code === 'INVALID_AGENT_RESPONSE') return transport.get(older, options);
    throw thrown;
  });
  const json = parseJson(await textOf(response, options.headMsMax));
  if (!isObject(json)) throw noA2A('the agent card is no JSON object');
  return { json, agent: decodeAgentCard(json, response.url || path.href) };
}
