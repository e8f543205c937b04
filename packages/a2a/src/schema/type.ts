import type TypeBox from 'typebox';
import type { TProperties, TSchema } from 'typebox';

type Schema = Record<string, unknown>;
type Options = Readonly<Schema>;

const optional = new WeakSet<object>();

/**
 * The builders of typebox that Hopline uses, with its types. Importing typebox loads 370 modules, which takes 0.12 CPU seconds and 24 MB
 * in every program that imports this package, such as the command and a client, although these schemas need nothing of it but plain JSON.
 * A test compares each builder with that of typebox.
 */
const builders = {
  String: (options: Options = {}): Schema => ({ type: 'string', ...options }),
  Boolean: (options: Options = {}): Schema => ({ type: 'boolean', ...options }),
  Integer: (options: Options = {}): Schema => ({ type: 'integer', ...options }),
  Number: (options: Options = {}): Schema => ({ type: 'number', ...options }),
  Unknown: (options: Options = {}): Schema => ({ ...options }),
  Literal: (value: unknown, options: Options = {}): Schema => ({ type: typeof value, const: value, ...options }),
  Enum: (values: readonly unknown[], options: Options = {}): Schema => ({ enum: values, ...options }),
  Array: (items: TSchema, options: Options = {}): Schema => ({ type: 'array', items, ...options }),
  Union: (anyOf: readonly TSchema[], options: Options = {}): Schema => ({ anyOf, ...options }),
  Unsafe: (schema: Schema): Schema => ({ ...schema }),
  /** `key` is a string schema. Without a pattern it matches every name. */
  Record: (key: Schema, value: TSchema, options: Options = {}): Schema => ({
    type: 'object',
    patternProperties: { [String(key.pattern ?? '^.*$')]: value },
    ...options,
  }),
  Object: (properties: TProperties, options: Options = {}): Schema => {
    const required = Object.keys(properties).filter(name => !optional.has(properties[name]!));
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options };
  },
  Optional: (schema: Schema): Schema => {
    const copy = { ...schema };
    optional.add(copy);
    return copy;
  },
};

export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>;
