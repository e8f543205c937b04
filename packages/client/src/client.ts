import { type Card, type CardOptions, readCard, verifiedCard } from './card.ts';
import { type ClientOptions, openTaskClient, type TaskClient } from './task-client.ts';

/** Every call throws an A2AError, after the retries that RetryLimits allow, or the reason of an aborted signal. */
export type Client = TaskClient & {
  /** With `keyOf` the card must be signed; the result contains only signed fields. */
  card(options?: CardOptions): Promise<Card>;
};

/** Throws TypeError for an invalid URL or header. A client holds no connections, so it need not be closed. */
export function createClient(options: ClientOptions): Client {
  const { client, calls } = openTaskClient(options);
  return {
    ...client,
    async card(call: CardOptions = {}) {
      const card = await calls.read(call, readCard);
      return call.keyOf === undefined ? card : verifiedCard(card, call.keyOf);
    },
  };
}
