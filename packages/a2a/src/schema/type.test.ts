import assert from 'node:assert/strict';
import { test } from 'node:test';
import TypeBox from 'typebox';
import { Type } from './type.ts';

/** Schemas made by one set of builders, each builder with options and without. */
const schemasOf = (type: typeof Type) => {
  const text = type.String({ maxLength: 3, reason: 'must be short' });
  const inner = type.Object({ text, flag: type.Optional(type.Boolean()) }, { additionalProperties: false, nullable: true });
  return {
    String: [text, type.String()],
    Boolean: [type.Boolean(), type.Boolean({ nullable: true })],
    Integer: [type.Integer(), type.Integer({ minimum: 1 })],
    Number: [type.Number(), type.Number({ exclusiveMinimum: 0 })],
    Unknown: [type.Unknown(), type.Unknown({ reason: 'anything' })],
    Literal: [type.Literal('a2a'), type.Literal(7, { reason: 'must be 7' })],
    Enum: [type.Enum(['a', 'b']), type.Enum(['a', 'b'], { reason: 'must be a or b' })],
    Array: [type.Array(text), type.Array(inner, { maxItems: 2 })],
    Union: [type.Union([text, inner]), type.Union([text, inner], { reason: 'must be one of two' })],
    Unsafe: [type.Unsafe({ type: 'object', nullable: true })],
    Record: [
      type.Record(type.String(), text),
      type.Record(type.String({ pattern: '^[a-z]+$' }), type.Integer(), { maxProperties: 4 }),
    ],
    Object: [
      inner,
      type.Object({}),
      type.Object({ all: type.Optional(text) }),
      type.Object({ inner, again: type.Optional(inner), text: type.Optional(text) }),
    ],
    Optional: [type.Optional(inner), type.Optional(type.Optional(text))],
  } satisfies Record<keyof typeof Type, unknown[]>;
};

test('each builder makes the schema that typebox makes, its members in the same order', () => {
  const expected = Object.entries(schemasOf(TypeBox));
  assert.deepEqual(Object.keys(Type).toSorted(), expected.map(([name]) => name).toSorted());
  for (const [name, schemas] of expected)
    assert.equal(JSON.stringify(schemasOf(Type)[name as keyof typeof Type]), JSON.stringify(schemas), name);
});

test('an optional member does not make the schema optional elsewhere', () => {
  const text = Type.String();
  Type.Object({ text: Type.Optional(text) });
  assert.deepEqual(Type.Object({ text }).required, ['text']);
});
