import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { ConfigError, defineConfig, MASK } from './config.ts';
import { URLS_MAX } from './parse-setting.ts';
import type { Setting } from './setting.ts';

const all = defineConfig({
  NAME: { type: 'string', default: 'demo', min: 2, max: 5, doc: 'A name.' },
  COUNT: { type: 'integer', default: 3, min: 1, max: 10, unit: 'tasks', doc: 'A count.' },
  RATIO: { type: 'number', default: 0.5, min: 0, max: 1, doc: 'A share.' },
  ON: { type: 'boolean', default: false, doc: 'A switch.' },
  MODE: { type: 'enum', values: ['slow', 'fast'], default: 'fast', doc: 'A mode, slow | fast.' },
  NATS: { type: 'url', schemes: ['nats', 'tls'], list: true, default: 'nats://127.0.0.1:4222', doc: 'Servers.' },
  KEY: { type: 'string', optional: true, secret: true, min: 8, doc: 'A key.' },
  HOME: { type: 'string', doc: 'A folder.' },
});

/** The faults of one setting for a given text. */
function faults(setting: Setting, raw: string): readonly string[] {
  try {
    defineConfig({ X: setting }).load({ X: raw });
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.faults;
  }
}

test('defaults, conversions and types come from one literal', () => {
  const settings = all.load({ HOME: '/srv', COUNT: '10', RATIO: '.25', ON: '1', MODE: 'slow', NATS: 'nats://a:1, tls://b:2' });
  // Each of these lines also checks the type: `number`, `boolean`, the union of the enum, `string | undefined`.
  const count: number = settings.COUNT;
  const on: boolean = settings.ON;
  const mode: 'slow' | 'fast' = settings.MODE;
  const key: string | undefined = settings.KEY;
  assert.deepEqual([count, on, mode, key], [10, true, 'slow', undefined]);
  assert.deepEqual(
    [settings.NAME, settings.RATIO, settings.NATS, settings.HOME],
    ['demo', 0.25, 'nats://a:1, tls://b:2', '/srv'],
  );
  assert.ok(Object.isFrozen(settings));
  assert.equal(all.load({ HOME: 'x', NAME: '' }).NAME, 'demo');
});

test('all faults are reported at once with name, value and allowed values, but without secrets', () => {
  const env = { NAME: 'x', COUNT: '11', RATIO: 'half', ON: 'yes', MODE: 'warp', NATS: 'nats://u:PLANTED@', KEY: 'PLANTED' };
  assert.throws(
    () => all.load(env),
    (error: unknown) => {
      assert.ok(error instanceof ConfigError);
      assert.deepEqual(error.faults, [
        'NAME is "x", must be text, 2 to 5 characters',
        'COUNT is "11", must be a whole number, 1 to 10 tasks',
        'RATIO is "half", must be a number, 0 to 1',
        'ON is "yes", must be true or false',
        'MODE is "warp", must be one of slow, fast',
        'NATS must be URLs joined by commas (nats, tls)',
        'KEY must be text, at least 8 characters',
        'HOME is required: text',
      ]);
      assert.match(error.message, /^8 settings are invalid:\n {2}NAME is/);
      return true;
    },
  );
});

test('numeric bounds are inclusive', () => {
  const integer: Setting = { type: 'integer', min: 1, max: 10, doc: '' };
  for (const raw of ['1', '10', '+5', ' 7 ']) assert.deepEqual(faults(integer, raw), [], raw);
  for (const raw of ['0', '11', '-1', '1.5', '1e1', '0x5', '٣', '9007199254740993', 'NaN'])
    assert.equal(faults(integer, raw).length, 1, raw);
  const number: Setting = { type: 'number', min: -0.5, max: 0.5, doc: '' };
  for (const raw of ['-0.5', '0.5', '5e-1', '.5', '0.']) assert.deepEqual(faults(number, raw), [], raw);
  for (const raw of ['-0.51', '0.51', 'Infinity', '0,5', '.', 'e']) assert.equal(faults(number, raw).length, 1, raw);
  const unbounded: Setting = { type: 'integer', doc: '' };
  assert.deepEqual(faults(unbounded, String(Number.MAX_SAFE_INTEGER)), []);
  assert.equal(faults(unbounded, String(2 ** 53)).length, 1);
});

test('an integer is allowed if and only if it is within its bounds', () => {
  const bounds = fc.tuple(fc.integer(), fc.integer()).map(pair => pair.toSorted((a, b) => a - b) as [number, number]);
  fc.assert(
    fc.property(bounds, fc.integer(), ([min, max], value) => {
      const inside = value >= min && value <= max;
      assert.equal(faults({ type: 'integer', min, max, doc: '' }, String(value)).length, inside ? 0 : 1);
    }),
  );
});

test('text bounds are inclusive', () => {
  const text: Setting = { type: 'string', min: 2, max: 4, doc: '' };
  assert.deepEqual(
    ['a', 'ab', 'abcd', 'abcde'].map(raw => faults(text, raw).length),
    [1, 0, 0, 1],
  );
});

test('booleans are true, false, 1 or 0', () => {
  const setting: Setting = { type: 'boolean', doc: '' };
  for (const raw of ['true', 'FALSE', '1', '0']) assert.deepEqual(faults(setting, raw), [], raw);
  for (const raw of ['yes', 'on', '2', 'constructor', '__proto__']) assert.equal(faults(setting, raw).length, 1, raw);
});

test('URLs are absolute, of an allowed scheme, and at most URLS_MAX in a list', () => {
  const one: Setting = { type: 'url', schemes: ['http', 'https'], doc: '' };
  for (const raw of ['http://h', 'https://u:p@h:1/p?q']) assert.deepEqual(faults(one, raw), [], raw);
  for (const raw of ['h:80', '/path', 'ftp://h', 'http://', 'http://a b', 'http://a,http://b c'])
    assert.equal(faults(one, raw).length, 1, raw);
  const list: Setting = { type: 'url', schemes: ['nats'], list: true, doc: '' };
  const urls = (n: number) => new Array(n).fill('nats://h:4222').join(',');
  assert.deepEqual(faults(list, urls(URLS_MAX)), []);
  assert.equal(faults(list, urls(URLS_MAX + 1)).length, 1);
  assert.equal(faults(list, 'nats://a,,nats://b').length, 1);
});

test('an invalid value is truncated in an error, an invalid URL is hidden', () => {
  assert.ok(faults({ type: 'integer', doc: '' }, 'x'.repeat(5000))[0]!.length < 200);
  assert.doesNotMatch(faults({ type: 'url', doc: '' }, 'PLANTED')[0]!, /PLANTED/);
});

test('effective settings mask secrets and credentials in URLs and omit settings without a value', () => {
  const load = (env: Record<string, string>) => all.effective(all.load({ HOME: '/srv', ...env }));
  const shown = load({ KEY: 'PLANTED-KEY', NATS: 'nats://u:PLANTED@a:1,nats://b:2' });
  assert.equal(shown.KEY, MASK);
  assert.equal(shown.NATS, `nats://${MASK}@a:1,nats://b:2`);
  assert.equal(shown.COUNT, 3);
  assert.equal('KEY' in load({}), false);
});

test('the settings table is aligned markdown with default, allowed values and meaning', () => {
  assert.equal(
    all.table(),
    [
      '| Setting | Default                 | Allowed                           | Meaning               |',
      '| ------- | ----------------------- | --------------------------------- | --------------------- |',
      '| `NAME`  | `demo`                  | text, 2 to 5 characters           | A name.               |',
      '| `COUNT` | `3`                     | a whole number, 1 to 10 tasks     | A count.              |',
      '| `RATIO` | `0.5`                   | a number, 0 to 1                  | A share.              |',
      '| `ON`    | `false`                 | true or false                     | A switch.             |',
      '| `MODE`  | `fast`                  | one of slow, fast                 | A mode, slow \\| fast. |',
      '| `NATS`  | `nats://127.0.0.1:4222` | URLs joined by commas (nats, tls) | Servers.              |',
      '| `KEY`   | not set                 | text, at least 8 characters       | A key.                |',
      '| `HOME`  | required                | text                              | A folder.             |',
      '',
    ].join('\n'),
  );
});

test('an inconsistent declaration throws', () => {
  assert.throws(
    () => defineConfig({ X: { type: 'integer', default: 11, max: 10, doc: '' } }),
    /X: the default 11 is not allowed/,
  );
  assert.throws(() => defineConfig({ X: { type: 'enum', values: ['a'], default: 'b', doc: '' } }), TypeError);
});
