import Type from 'typebox';

/** Fields that entries of several adapters have. `reason` is what a wrong value is told, instead of the schema's own words. */

const MS_MAX = 24 * 60 * 60 * 1000;

export const ms = Type.Optional(Type.Integer({ minimum: 1, maximum: MS_MAX }));
export const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
export const strings = Type.Record(Type.String(), Type.String({ maxLength: 16_384 }));
export const httpUrl = Type.String({
  pattern: '^https?://',
  maxLength: 2_048,
  reason: 'must begin with http:// or https://',
});
/** Whose value is a credential, which does not stand in an agents file. */
export const variable = Type.String({
  pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$',
  reason: 'must be the name of an environment variable',
});
export const oneOf = (values: readonly string[]) => ({ reason: `must be one of ${values.join(', ')}` });
