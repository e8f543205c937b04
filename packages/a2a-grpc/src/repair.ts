import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { isObject, type JsonObject } from '@hopline/a2a';

/**
 * Levels of JSON in a Struct or a Value. Protobuf runtimes read 100 levels of messages. In C++, Python and Java an object takes three of
 * them (Struct, entry, Value), and up to eight messages surround the value.
 */
export const JSON_LEVELS_MAX = 30;

/**
 * Repairs ProtoJSON that a parser refuses: drops unreadable times and undefined members, reads base64 as far as it is valid, replaces lone
 * surrogates with U+FFFD, as UTF-8 does, and replaces data below JSON_LEVELS_MAX with its JSON text.
 */
export function repaired(type: DescMessage, json: JsonObject): JsonObject {
  const fields = new Map(type.fields.map(field => [field.jsonName, field]));
  const members = Object.entries(json).map(([name, value]) => [name, repairedField(fields.get(name), value)] as const);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

function repairedField(field: DescField | undefined, value: unknown): unknown {
  if (value === undefined || value === null || field === undefined) return undefined;
  if (field.fieldKind === 'list') {
    return Array.isArray(value) ? value.map(item => repairedValue(field.message, field.scalar, item)) : undefined;
  }
  if (field.fieldKind === 'map') {
    if (!isObject(value)) return undefined;
    const entries = Object.entries(value).map(([key, item]) => [key, repairedValue(field.message, field.scalar, item)]);
    return Object.fromEntries(entries);
  }
  return repairedValue(field.message, field.scalar, value);
}

function repairedValue(type: DescMessage | undefined, scalar: ScalarType | undefined, value: unknown): unknown {
  switch (type?.typeName) {
    case undefined:
      return scalar === ScalarType.BYTES ? Buffer.from(String(value), 'base64').toString('base64') : wellFormed(value);
    case 'google.protobuf.Timestamp':
      return timeOf(value);
    case 'google.protobuf.Struct':
    case 'google.protobuf.Value':
      return wellFormed(value);
    default:
      return isObject(value) && type !== undefined ? repaired(type, value) : undefined;
  }
}

/** A time without a zone is read as UTC, as the specification requires. */
function timeOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const at = [`${value}Z`, value].map(text => Date.parse(text)).find(time => !Number.isNaN(time));
  return at === undefined ? undefined : new Date(at).toISOString();
}

function wellFormed(value: unknown, levels = JSON_LEVELS_MAX): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value;
  if (levels === 0) return JSON.stringify(value);
  if (Array.isArray(value)) return value.map(item => wellFormed(item, levels - 1) ?? null);
  const members = Object.entries(value).map(([name, item]) => [name.toWellFormed(), wellFormed(item, levels - 1)] as const);
  return Object.fromEntries(members.filter(([, item]) => item !== undefined));
}
