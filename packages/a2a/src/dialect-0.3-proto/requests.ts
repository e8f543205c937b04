import { withJsonFieldNames } from '../dialect-1.0/json-names.ts';
import { isObject, type JsonObject, present } from '../json-value.ts';
import { jsonMessage } from './objects.ts';

/**
 * Requests in the form of the 0.3 proto as the params that JSON-RPC of 0.3 has for the same. What is missing is left to the schemas. Their fields come by their JSON names, or by those of the
 * definition (`message_id`), which a ProtoJSON parser takes as well: to an agent of 0.3 the Python SDK 1.x writes these.
 */

// The proto knows no absent number: 0 is what a client sends that said nothing.
const historyLengthOf = (value: unknown): unknown => (value === 0 ? undefined : value);

/** The field is called `request` in the definition, and `message` in its JSON; a parser takes both. */
export function sendParams({ message, request, configuration, metadata }: JsonObject): JsonObject {
  return present({ message: jsonMessage(message ?? request), configuration: configurationOf(configuration), metadata });
}

/** The proto knows no absent flag either: with a configuration `blocking` is what it says, without one a send waits, as in JSON. Both official SDKs read it like that. */
function configurationOf(value: unknown): JsonObject | undefined {
  if (!isObject(value)) return undefined;
  const { acceptedOutputModes, pushNotification, historyLength, blocking = false } = withJsonFieldNames(value);
  const pushNotificationConfig = pushNotification;
  return present({ acceptedOutputModes, blocking, historyLength: historyLengthOf(historyLength), pushNotificationConfig });
}
