import { withJsonFieldNames } from '../dialect-1.0/decode.ts';
import { isObject, type JsonObject, present } from '../json-value.ts';
import { REFERENCES } from './encode.ts';

/**
 * Converts ProtoJSON requests of 0.3 into the params of JSON-RPC; missing members are left to the schemas. Fields may have their JSON names
 * or those of the definition (`message_id`), as in any ProtoJSON parser: the Python SDK 1.x sends the latter to agents of 0.3.
 */

/**
 * `value`: ProtoJSON of a client's message. A message in the JSON of 0.3 stays as it is: the specification's HTTP+JSON examples
 * use that form.
 */
export function jsonMessage(value: unknown): unknown {
  if (!isObject(value) || (value.content === undefined && value.parts !== undefined)) return value;
  const { role, content, metadata, ...same } = withJsonFieldNames(value);
  const { [REFERENCES]: referenceTaskIds, ...otherMetadata } = isObject(metadata) ? metadata : {};
  return present({
    ...same,
    kind: 'message',
    role: role === 'ROLE_USER' ? 'user' : role === 'ROLE_AGENT' ? 'agent' : role,
    parts: Array.isArray(content) ? content.map(jsonPart) : [],
    metadata: Object.keys(otherMetadata).length > 0 ? otherMetadata : undefined,
    referenceTaskIds,
  });
}

/**
 * Converts a part from ProtoJSON to the JSON of 0.3. A part without content stays empty, so that the schema of the operation refuses it.
 */
export function jsonPart(part: unknown): JsonObject {
  if (!isObject(part)) return {};
  const { text, file, data, metadata } = part;
  if (isObject(file)) return { kind: 'file', file: jsonFile(file), ...present({ metadata }) };
  if (isObject(data)) return { kind: 'data', data: data.data ?? {}, ...present({ metadata }) };
  return present({ kind: text === undefined ? undefined : 'text', text, metadata });
}

function jsonFile(file: JsonObject): JsonObject {
  const { fileWithBytes, fileWithUri, name, mimeType } = withJsonFieldNames(file);
  return present({ bytes: fileWithBytes, uri: fileWithUri, name, mimeType });
}

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

/**
 * The params of a request that sets a configuration. Clients send three forms: CreateTaskPushNotificationConfigRequest (the definition and
 * the Python SDK), only its `config` (the JavaScript SDK), and the bare configuration. The resource name in it is not read, because Python
 * writes `None` for an absent id.
 */
export function setPushParams(taskId: unknown, request: JsonObject): JsonObject {
  const body = withJsonFieldNames(request);
  const outer = isObject(body.config) ? withJsonFieldNames(body.config) : body;
  const config = isObject(outer.pushNotificationConfig) ? outer.pushNotificationConfig : outer;
  const id = config.id || body.configId;
  return present({ taskId, pushNotificationConfig: { ...config, ...present({ id: id || undefined }) } });
}
