import { type DescMessage, fromBinary, fromJson, type JsonObject as ProtoJson, toBinary, toJson } from '@bufbuild/protobuf';
import { A2AError, type JsonObject } from '@hopline/a2a';
import { repaired } from './repair.ts';

// What stands in a document beside its own members is not for this binding: the members of 0.3 on a card, for example.
const TOLERANT = { ignoreUnknownFields: true };

/**
 * A message from the wire as ProtoJSON: members that have their default are absent. Throws INVALID_PARAMS for bytes that are no such message, also for one that nests deeper than 100 levels, the limit of
 * every protobuf runtime; a level of JSON takes two or three of them.
 */
export function readMessage(type: DescMessage, bytes: Uint8Array): JsonObject {
  try {
    return toJson(type, fromBinary(type, bytes)) as JsonObject;
  } catch (cause) {
    throw new A2AError('INVALID_PARAMS', { detail: `the request is not readable as ${type.typeName}`, cause });
  }
}

/**
 * ProtoJSON as bytes for the wire. What an agent sent and a protobuf cannot hold (a time that is none, base64 that is none, half a surrogate pair) is repaired as far as it goes.
 * Throws INVALID_AGENT_RESPONSE for what nests deeper than a protobuf may.
 */
export function writeMessage(type: DescMessage, json: JsonObject): Uint8Array {
  try {
    return written(type, json);
  } catch {
    // Rare, so it is not looked for beforehand: that would cost every frame as much as encoding it.
    try {
      return written(type, repaired(type, json));
    } catch (cause) {
      throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'it nests deeper than gRPC can carry', cause });
    }
  }
}

function written(type: DescMessage, json: JsonObject): Uint8Array {
  return toBinary(type, fromJson(type, json as ProtoJson, TOLERANT));
}
