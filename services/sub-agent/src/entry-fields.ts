import { Type } from '@hopline/a2a/schema-type';

/** Field types of several adapters. `reason` replaces the error text of the schema. */

const MS_MAX = 24 * 60 * 60 * 1000;

export const ms = Type.Optional(Type.Integer({ minimum: 1, maximum: MS_MAX }));
export const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
export const strings = Type.Record(Type.String(), Type.String({ maxLength: 16_384 }));
export const httpUrl = Type.String({
  pattern: '^https?://',
  maxLength: 2_048,
  reason: 'must begin with http:// or https://',
});
/** The name of a variable that holds a credential. */
export const variable = Type.String({
  pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$',
  reason: 'must be the name of an environment variable',
});
/** Larger than the environment of a developer's shell, because `hopline agent` names all of its variables. */
const VARIABLES_MAX = 1_024;
/** Variables that the agent's code reads. A launcher passes on only these. */
export const variables = Type.Optional(
  Type.Array(variable, { maxItems: VARIABLES_MAX, reason: 'must be a list of names of environment variables' }),
);
export const oneOf = (values: readonly string[]) => ({ reason: `must be one of ${values.join(', ')}` });
