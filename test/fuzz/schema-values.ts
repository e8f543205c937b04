import type { JsonObject } from '@hopline/a2a';
import fc from 'fast-check';
import type { OpenApiDocument } from './openapi-document.ts';

type Schema = {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: JsonObject[];
  /** `properties`: members that must not be null, although they may be where another alternative is chosen. */
  oneOf?: { required: string[]; properties?: Record<string, { not: { type: 'null' } }> }[];
  properties?: Record<string, JsonObject>;
  required?: string[];
  items?: JsonObject;
  minItems?: number;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  pattern?: string;
  format?: string;
  contentEncoding?: string;
};

const LIST_ITEMS_MAX = 3;
const TEXT_CHARS_MAX = 24;

/** Values of a JSON schema, for the keywords that the document uses; throws on others. */
export function valuesOf(document: OpenApiDocument, schema: JsonObject): fc.Arbitrary<unknown> {
  const read = document.resolved(schema) as Schema;
  const { type, enum: values, anyOf } = read;
  if ('const' in read) return fc.constant(read.const);
  if (values !== undefined) return fc.constantFrom(...values);
  if (anyOf !== undefined) return fc.oneof(...anyOf.map(one => valuesOf(document, one)));
  const types = Array.isArray(type) ? type : [type];
  return fc.oneof(...types.map(one => ofType(document, one, read)));
}

function ofType(document: OpenApiDocument, type: string | undefined, schema: Schema): fc.Arbitrary<unknown> {
  switch (type) {
    case 'object':
      return objects(document, schema);
    case 'array':
      return fc.array(valuesOf(document, schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: LIST_ITEMS_MAX });
    case 'string':
      return strings(schema);
    case 'integer':
      return fc.integer({ min: schema.minimum ?? -(2 ** 31), max: schema.maximum ?? 2 ** 31 - 1 });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case undefined:
      return fc.jsonValue({ maxDepth: 3 });
    default:
      throw new Error(`the fuzzer does not support the schema type ${type}`);
  }
}

function objects(document: OpenApiDocument, { properties = {}, required = [], oneOf }: Schema): fc.Arbitrary<unknown> {
  const members = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, valuesOf(document, one)]));
  if (oneOf === undefined) return fc.record(members, { requiredKeys: required, noNullPrototype: true });
  const exclusive = new Set(oneOf.flatMap(one => one.required));
  const shared = Object.entries(members).filter(([name]) => !exclusive.has(name));
  return fc.oneof(
    ...oneOf.map(({ required: names, properties: set = {} }) => {
      const named = names.map(
        name => [name, set[name] ? members[name]!.filter(value => value !== null) : members[name]!] as const,
      );
      return fc.record(Object.fromEntries([...shared, ...named]), {
        requiredKeys: [...names, ...required],
        noNullPrototype: true,
      });
    }),
  );
}

function strings({ pattern, format, minLength = 0, maxLength = TEXT_CHARS_MAX, contentEncoding }: Schema): fc.Arbitrary<string> {
  const bounds = { minLength, maxLength: Math.min(maxLength, TEXT_CHARS_MAX) };
  if (contentEncoding === 'base64') return fc.base64String(bounds);
  if (format === 'date-time')
    return fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true }).map(date => date.toISOString());
  if (pattern?.startsWith('^https?://')) return fc.webUrl();
  if (pattern === undefined) return fc.oneof(fc.string(bounds), fc.string({ ...bounds, unit: 'binary' }));
  const rule = new RegExp(pattern, 'u');
  const near = fc.oneof(
    fc.string(bounds),
    fc.string({ ...bounds, unit: 'grapheme' }),
    fc.base64String(bounds),
    fc.constantFrom('', 'x'),
  );
  // Most texts satisfy a pattern that excludes characters; for other patterns values are generated.
  const made = pattern.startsWith('^[^') ? near : fc.stringMatching(new RegExp(pattern));
  return made.filter(text => rule.test(text) && text.length >= minLength && text.length <= maxLength);
}
