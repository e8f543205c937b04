import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { isObject, type JsonObject } from '@hopline/a2a';

/**
 * Repairs ProtoJSON that a parser refuses: drops unreadable times and undefined members, reads base64 as far as it is valid, and replaces
 * lone surrogates with U+FFFD, as UTF-8 does.
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

function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(item => wellFormed(item) ?? null);
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, item]) => [name.toWellFormed(), wellFormed(item)] as const);
  return Object.fromEntries(members.filter(([, item]) => item !== undefined));
}
