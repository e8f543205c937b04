import { withJsonFieldNames } from '../dialect-1.0/json-names.ts';
import { isObject, type JsonObject, present } from '../json-value.ts';

/** A part of the JSON of 0.3 in ProtoJSON, where the member replaces `kind`. */
export function protoPart(part: unknown): JsonObject {
  const { kind, text, file, data, metadata } = part as JsonObject;
  if (kind === 'text') return { text, ...present({ metadata }) };
  if (kind === 'file') return { file: protoFile(file as JsonObject), ...present({ metadata }) };
  return { data: { data }, ...present({ metadata }) };
}

function protoFile({ bytes, uri, name, mimeType }: JsonObject): JsonObject {
  return present({ fileWithBytes: bytes, fileWithUri: uri, name, mimeType });
}

/** The reverse. A part without content stays empty, and the schema of the operation refuses it. */
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
