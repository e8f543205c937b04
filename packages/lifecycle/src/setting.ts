type Base = {
  /** One sentence for the settings table. */
  readonly doc: string;
  /** Unit of the value, e.g. `ms`, `bytes`; shown in the table and in errors. */
  readonly unit?: string;
  /** Never printed, either in errors or in `effective`. */
  readonly secret?: boolean;
  /** The setting may be absent without a default. Its value is then `undefined`. */
  readonly optional?: boolean;
};

/** `min` and `max`: length in characters, inclusive. */
type StringSetting = Base & {
  readonly type: 'string';
  readonly default?: string;
  /** Pattern that the whole text must match, and its description for errors. */
  readonly form?: { readonly pattern: RegExp; readonly words: string };
  readonly min?: number;
  readonly max?: number;
};
/** `min` and `max`: inclusive. */
type NumberSetting = Base & {
  readonly type: 'integer' | 'number';
  readonly default?: number;
  readonly min?: number;
  readonly max?: number;
};
/** `true`, `false`, `1` or `0`. */
type BooleanSetting = Base & { readonly type: 'boolean'; readonly default?: boolean };
type EnumSetting = Base & { readonly type: 'enum'; readonly values: readonly string[]; readonly default?: string };
/**
 * One absolute URL, or several joined by commas when `list` is true (`nats://a:4222,nats://b:4222`). The value stays a string.
 */
type UrlSetting = Base & {
  readonly type: 'url';
  readonly default?: string;
  /** Allowed schemes without the colon, e.g. `['http', 'https']`. */
  readonly schemes?: readonly string[];
  readonly list?: boolean;
};

export type Setting = StringSetting | NumberSetting | BooleanSetting | EnumSetting | UrlSetting;
export type SettingValue = string | number | boolean;

type Kind<S extends Setting> = S extends { readonly type: 'integer' | 'number' }
  ? number
  : S extends { readonly type: 'boolean' }
    ? boolean
    : S extends { readonly type: 'enum'; readonly values: readonly (infer V)[] }
      ? V
      : string;

/** Type of a loaded setting; `undefined` is part of it only for an optional setting without a default. */
export type ValueOf<S extends Setting> = S extends { readonly default: SettingValue }
  ? Kind<S>
  : S extends { readonly optional: true }
    ? Kind<S> | undefined
    : Kind<S>;

/** The allowed values in words, for the table and for errors. */
export function describeAllowed(setting: Setting): string {
  switch (setting.type) {
    case 'boolean':
      return 'true or false';
    case 'enum':
      return `one of ${setting.values.join(', ')}`;
    case 'url':
      return `${setting.list === true ? 'URLs joined by commas' : 'a URL'}${setting.schemes ? ` (${setting.schemes.join(', ')})` : ''}`;
    case 'string':
      if (setting.form !== undefined) return setting.form.words;
      return `text${bounds(setting.min, setting.max, 'characters')}`;
    case 'integer':
      return `a whole number${bounds(setting.min, setting.max, setting.unit)}`;
    case 'number':
      return `a number${bounds(setting.min, setting.max, setting.unit)}`;
  }
}

function bounds(min: number | undefined, max: number | undefined, unit: string | undefined): string {
  const suffix = unit === undefined ? '' : ` ${unit}`;
  if (min !== undefined && max !== undefined) return `, ${min} to ${max}${suffix}`;
  if (min !== undefined) return `, at least ${min}${suffix}`;
  if (max !== undefined) return `, at most ${max}${suffix}`;
  return unit === undefined || unit === 'characters' ? '' : `,${suffix}`;
}
