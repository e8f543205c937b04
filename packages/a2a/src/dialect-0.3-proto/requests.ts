import { withJsonFieldNames } from '../dialect-1.0/json-names.ts';
import { isObject, type JsonObject, present } from '../json-value.ts';
import { jsonMessage } from './objects.ts';

/**
 * Converts ProtoJSON requests of 0.3 into the params of JSON-RPC; missing members are left to the schemas. Fields may have
 * their JSON names or those of the definition (`message_id`), which ProtoJSON parsers accept too: the Python SDK 1.x sends the
 * latter to agents of 0.3.
 */

// proto3 has no absent number: clients send 0 for "not set".
const historyLengthOf = (value: unknown): unknown => (value === 0 ? undefined : value);

/** The field is `request` in the definition and `message` in its JSON; a parser accepts both. */
export function sendParams({ message, request, configuration, metadata }: JsonObject): JsonObject {
  return present({ message: jsonMessage(message ?? request), configuration: configurationOf(configuration), metadata });
}

/**
 * proto3 has no absent flag: in a configuration an absent `blocking` is false. Without a configuration a send blocks, as in
 * JSON. Both official SDKs do the same.
 */
function configurationOf(value: unknown): JsonObject | undefined {
  if (!isObject(value)) return undefined;
  const { acceptedOutputModes, pushNotification, historyLength, blocking = false } = withJsonFieldNames(value);
  const pushNotificationConfig = pushNotification;
  return present({ acceptedOutputModes, blocking, historyLength: historyLengthOf(historyLength), pushNotificationConfig });
}
