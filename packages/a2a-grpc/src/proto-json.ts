import { type DescMessage, fromBinary, fromJson, type JsonObject as ProtoJson, toBinary, toJson } from '@bufbuild/protobuf';
import { A2AError, isDeeperThan, type JsonObject } from '@hopline/a2a';
import { JSON_LEVELS_MAX, repaired } from './repair.ts';

// Documents may have members other than those of the definition, e.g. those of 0.3 on a card.
const TOLERANT = { ignoreUnknownFields: true };

/**
 * Decodes a message to ProtoJSON; members with default values are absent. Throws INVALID_PARAMS for bytes that are not such a message, and
 * for messages nested deeper than 100 levels, the limit of every protobuf runtime. A level of JSON takes two or three of these levels.
 */
export function readMessage(type: DescMessage, bytes: Uint8Array): JsonObject {
  try {
    return toJson(type, fromBinary(type, bytes)) as JsonObject;
  } catch (cause) {
    throw new A2AError('INVALID_PARAMS', { detail: `the request must be a valid ${type.typeName}`, cause });
  }
}

/**
 * Encodes ProtoJSON. Values that protobuf cannot hold (an invalid time or base64, a lone surrogate), and those that nest deeper than its clients
 * read, are repaired as far as possible. Throws INVALID_AGENT_RESPONSE for any other value that does not fit the message.
 */
export function writeMessage(type: DescMessage, json: JsonObject): Uint8Array {
  if (isDeeperThan(json, JSON_LEVELS_MAX)) return writtenRepaired(type, json);
  try {
    return written(type, json);
  } catch {
    // Repairs a value only after encoding has failed, because checking each frame beforehand would cost as much as encoding it.
    return writtenRepaired(type, json);
  }
}

function writtenRepaired(type: DescMessage, json: JsonObject): Uint8Array {
  try {
    return written(type, repaired(type, json));
  } catch (cause) {
    throw new A2AError('INVALID_AGENT_RESPONSE', { detail: `a value does not fit into ${type.typeName}`, cause });
  }
}

function written(type: DescMessage, json: JsonObject): Uint8Array {
  return toBinary(type, fromJson(type, json as ProtoJson, TOLERANT));
}
