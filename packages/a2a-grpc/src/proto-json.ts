import { type DescMessage, fromBinary, fromJson, type JsonObject as ProtoJson, toBinary, toJson } from '@bufbuild/protobuf';
import { A2AError, type JsonObject } from '@hopline/a2a';
import { repaired } from './repair.ts';

// Documents may have members besides those of the definition, e.g. those of 0.3 on a card.
const TOLERANT = { ignoreUnknownFields: true };

/**
 * Decodes a message to ProtoJSON; members with default values are absent. Throws INVALID_PARAMS for bytes that are not such a message, and
 * for messages nested deeper than 100 levels, the limit of every protobuf runtime. A level of JSON takes two or three of them.
 */
export function readMessage(type: DescMessage, bytes: Uint8Array): JsonObject {
  try {
    return toJson(type, fromBinary(type, bytes)) as JsonObject;
  } catch (cause) {
    throw new A2AError('INVALID_PARAMS', { detail: `the request must be a valid ${type.typeName}`, cause });
  }
}

/**
 * Encodes ProtoJSON. Values from an agent that protobuf cannot hold (an invalid time or base64, a lone surrogate) are repaired as far as
 * possible. Throws INVALID_AGENT_RESPONSE when the value is nested too deeply.
 */
export function writeMessage(type: DescMessage, json: JsonObject): Uint8Array {
  try {
    return written(type, json);
  } catch {
    // Repairs a value only after a failure: checking each frame beforehand would cost as much as encoding it.
    try {
      return written(type, repaired(type, json));
    } catch (cause) {
      throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the value nests deeper than a protobuf message may', cause });
    }
  }
}

function written(type: DescMessage, json: JsonObject): Uint8Array {
  return toBinary(type, fromJson(type, json as ProtoJson, TOLERANT));
}
