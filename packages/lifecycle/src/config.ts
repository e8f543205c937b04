import type { Env } from '@hopline/telemetry';
import { checkSetting, parseSetting } from './parse-setting.ts';
import { describeAllowed, type Setting, type SettingValue, type ValueOf } from './setting.ts';

export type Settings<T extends Readonly<Record<string, Setting>>> = { readonly [K in keyof T]: ValueOf<T[K]> };
/** Replaces a secret in output. */
export const MASK = '***';

/** All faults of an environment. `message` is for the operator and contains no secrets. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly string[];

  constructor(faults: readonly string[], options?: ErrorOptions) {
    const [only = ''] = faults;
    super(
      faults.length === 1 ? only : `${faults.length} settings are invalid:\n${faults.map(fault => `  ${fault}`).join('\n')}`,
      options,
    );
    this.faults = faults;
  }
}

/**
 * Runs code that prepares a service from its settings before it opens the log. Any error in that code (a missing file, a module that does
 * not load) counts as a fault of the settings: the promise rejects with ConfigError, and the process ends with EXIT_CONFIG.
 */
export async function fromSettings<T>(work: () => Promise<T> | T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const cause = error instanceof Error ? error.cause : undefined;
    throw new ConfigError(
      [error instanceof Error ? error.message : 'the settings cannot be used'],
      cause === undefined ? {} : { cause },
    );
  }
}

export interface Config<T extends Readonly<Record<string, Setting>>> {
  readonly settings: T;
  /** Parses and checks every setting. An empty value counts as not set. Throws ConfigError with all faults. */
  load(env: Env): Settings<T>;
  /** The settings as a markdown table, for READMEs. */
  table(): string;
  /**
   * The effective values for a log line at start: secrets and credentials in URLs are masked, settings without a value omitted.
   */
  effective(settings: Settings<T>): Record<string, SettingValue>;
}

/**
 * Declares settings: one literal provides the type, the check and the documentation. Throws if a default is outside of its bounds, so that
 * the first test finds it.
 */
export function defineConfig<const T extends Readonly<Record<string, Setting>>>(settings: T): Config<T> {
  const entries = Object.entries<Setting>(settings);
  for (const [name, setting] of entries) {
    const wrong = setting.default === undefined ? undefined : checkSetting(setting, setting.default);
    if (wrong !== undefined) throw new TypeError(`${name}: the default ${setting.default} is not allowed: ${wrong}`);
  }
  return {
    settings,
    load: env => load(entries, env) as Settings<T>,
    table: () => table(entries),
    effective: loaded => effective(entries, loaded),
  };
}

function load(entries: [string, Setting][], env: Env): Record<string, SettingValue | undefined> {
  const faults: string[] = [];
  const values: Record<string, SettingValue | undefined> = {};
  for (const [name, setting] of entries) {
    const raw = env[name];
    if (raw === undefined || raw === '') {
      values[name] = setting.default;
      if (setting.default === undefined && setting.optional !== true)
        faults.push(`${name} is required: ${describeAllowed(setting)}`);
      continue;
    }
    const parsed = parseSetting(setting, raw);
    if ('value' in parsed) values[name] = parsed.value;
    else faults.push(`${name}${rawForError(setting, raw)} must be ${parsed.expected}`);
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return Object.freeze(values);
}

/** Longer invalid values are truncated in errors. */
const RAW_CHARS_MAX = 80;

// A URL can contain a password, which cannot be found in an invalid URL, so its value is not shown.
function rawForError(setting: Setting, raw: string): string {
  if (setting.secret === true || setting.type === 'url') return '';
  return ` is ${JSON.stringify(raw.length > RAW_CHARS_MAX ? `${raw.slice(0, RAW_CHARS_MAX)}…` : raw)},`;
}

function effective(entries: [string, Setting][], loaded: Readonly<Record<string, unknown>>): Record<string, SettingValue> {
  const values: Record<string, SettingValue> = {};
  for (const [name, setting] of entries) {
    const value = loaded[name] as SettingValue | undefined;
    if (value === undefined) continue;
    values[name] = setting.secret === true ? MASK : maskUserinfo(setting, value);
  }
  return values;
}

function maskUserinfo(setting: Setting, value: SettingValue): SettingValue {
  return setting.type === 'url' ? String(value).replaceAll(/:\/\/[^/,@]+@/g, `://${MASK}@`) : value;
}

// Padded as formatters write markdown tables, so that a formatted README equals the generated text.
function table(entries: [string, Setting][]): string {
  const inCell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  const rows = entries.map(([name, setting]) =>
    [`\`${name}\``, describeDefault(setting), describeAllowed(setting), setting.doc].map(inCell),
  );
  const head = ['Setting', 'Default', 'Allowed', 'Meaning'];
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map(row => row[column]!.length)));
  const line = (cells: string[]) => `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`;
  return [line(head), line(widths.map(width => '-'.repeat(width))), ...rows.map(line), ''].join('\n');
}

function describeDefault(setting: Setting): string {
  if (setting.default !== undefined) return setting.secret === true ? MASK : `\`${setting.default}\``;
  return setting.optional === true ? 'not set' : 'required';
}
