import { describeAllowed, type Setting, type SettingValue } from './setting.ts';

type Parsed = { readonly value: SettingValue } | { readonly expected: string };

/** Largest number of URLs in one setting. */
export const URLS_MAX = 32;

const INTEGER = /^[+-]?\d+$/;
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, '1': true, false: false, '0': false };

/** Parses the text of an environment variable. Returns the value, or a description of the allowed values. `raw` is not empty. */
export function parseSetting(setting: Setting, raw: string): Parsed {
  const value = convert(setting, raw.trim());
  const expected = value === undefined ? describeAllowed(setting) : checkSetting(setting, value);
  return expected === undefined ? { value: value as SettingValue } : { expected };
}

/** Returns undefined for an allowed value, otherwise a description of the allowed values. */
export function checkSetting(setting: Setting, value: SettingValue): string | undefined {
  return allowed(setting, value) ? undefined : describeAllowed(setting);
}

function convert(setting: Setting, text: string): SettingValue | undefined {
  switch (setting.type) {
    case 'boolean':
      return BOOLEANS[text.toLowerCase()];
    // Accepts only plain decimals, because `Number('')` is 0 and `Number('0x10')` is 16.
    case 'integer':
      return INTEGER.test(text) ? Number(text) : undefined;
    case 'number':
      return DECIMAL.test(text) ? Number(text) : undefined;
    default:
      return text;
  }
}

function allowed(setting: Setting, value: SettingValue): boolean {
  switch (setting.type) {
    case 'boolean':
      return typeof value === 'boolean';
    case 'integer':
      return Number.isSafeInteger(value) && within(setting, Number(value));
    case 'number':
      return Number.isFinite(value) && within(setting, Number(value));
    case 'enum':
      return setting.values.includes(String(value));
    case 'url':
      return urlsOf(String(value), setting.list === true).every(url => isUrl(url, setting.schemes));
    case 'string':
      return within(setting, String(value).length) && (setting.form?.pattern.test(String(value)) ?? true);
  }
}

function within(bounds: { readonly min?: number; readonly max?: number }, size: number): boolean {
  return size >= (bounds.min ?? Number.NEGATIVE_INFINITY) && size <= (bounds.max ?? Number.POSITIVE_INFINITY);
}

function urlsOf(text: string, list: boolean): string[] {
  const urls = list ? text.split(',').map(url => url.trim()) : [text];
  return urls.length > URLS_MAX ? [''] : urls;
}

function isUrl(text: string, schemes: readonly string[] | undefined): boolean {
  const url = URL.parse(text);
  if (url === null || url.host === '' || /\s/.test(text)) return false;
  return schemes === undefined || schemes.includes(url.protocol.slice(0, -1));
}
