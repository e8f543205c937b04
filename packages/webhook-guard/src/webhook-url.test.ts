import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { AllowList } from './allow-list.ts';
import type { WebhookRules } from './webhook-rules.ts';
import { WEBHOOK_SETTINGS, webhookRules } from './webhook-rules.ts';
import { WEBHOOK_URL_CHARS_MAX, webhookUrlProblem } from './webhook-url.ts';

const NOT_HTTPS = 'is not https; HOPLINE_WEBHOOK_HTTP of the server permits http';

const rules = (http: boolean, allow = ''): WebhookRules => ({ http, allow: new AllowList(allow) });
const closed = rules(false);
const open = rules(true);

const LOOPBACK = [
  'http://127.0.0.1/hook',
  'http://127.0.0.1:8080/',
  'http://127.1/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0x7f.1/',
  'http://0177.0.0.1/',
  'http://017700000001/',
  'http://127.0.0.1./',
  'http://%31%32%37.0.0.1/',
  'http://①②⑦.0.0.1/',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[0:0:0:0:0:0:0:1]/',
  'http://0.0.0.0/',
  'http://0/',
  'http://[::]/',
  'http://localhost/',
  'http://localhost./',
  'http://LOCALHOST:9999/',
  'http://a.localhost/',
  'http://a.localhost./',
];

suite('webhook URLs', () => {
  test('every spelling of a loopback address is rejected', () => {
    for (const url of LOOPBACK)
      assert.match(webhookUrlProblem(url, open) ?? 'none', /not on the public internet; HOPLINE_WEBHOOK_ALLOW/, url);
  });

  test('addresses that are not public are rejected; public addresses and names are accepted', () => {
    for (const url of [
      'http://169.254.169.254/latest/meta-data/',
      'https://10.0.0.1',
      'https://[fd00:ec2::254]/',
      'https://[64:ff9b::a9fe:a9fe]/',
    ])
      assert.match(webhookUrlProblem(url, open) ?? 'none', /not on the public internet; HOPLINE_WEBHOOK_ALLOW/, url);
    for (const url of [
      'https://8.8.8.8/',
      'https://[2606:4700::1111]/hook',
      'https://hooks.example/a?b=c',
      'https://localhost.example/',
    ])
      assert.equal(webhookUrlProblem(url, open), undefined, url);
  });

  test('http is rejected unless a setting allows it', () => {
    assert.equal(webhookUrlProblem('http://hooks.example/', closed), NOT_HTTPS);
    assert.equal(webhookUrlProblem('http://hooks.example/', open), undefined);
    assert.equal(webhookUrlProblem('https://hooks.example/', closed), undefined);
  });

  test('an allow-list permits only its entries', () => {
    const some = rules(true, 'localhost,10.0.0.0/8');
    for (const url of ['http://localhost:9999/', 'http://localhost./', 'http://10.1.2.3/'])
      assert.equal(webhookUrlProblem(url, some), undefined, url);
    for (const url of ['http://127.0.0.1/', 'http://a.localhost/', 'http://192.168.0.1/'])
      assert.notEqual(webhookUrlProblem(url, some), undefined, url);
  });

  test('a URL that no rules can allow is rejected without rules', () => {
    const cases: Record<string, RegExp> = {
      '': /absolute/,
      '/hook': /absolute/,
      'hooks.example': /absolute/,
      'https://': /absolute/,
      'ftp://hooks.example/': /neither/,
      'file:///etc/passwd': /neither/,
      'javascript:alert(1)': /neither/,
      'gopher://hooks.example/': /neither/,
      'https://user@hooks.example/': /user name/,
      'https://:secret@hooks.example/': /password/,
      'https://hooks.example:22/': /port/,
      'https://hooks.example:1023/': /port/,
    };
    for (const [url, problem] of Object.entries(cases)) assert.match(webhookUrlProblem(url) ?? 'none', problem, url);
    for (const url of [
      'http://127.0.0.1:9000/',
      'https://hooks.example:1024/',
      'https://hooks.example:443/',
      'http://hooks.example:80/',
      'https://hooks.example:80/',
    ])
      assert.equal(webhookUrlProblem(url), undefined, url);
  });

  test('a URL longer than WEBHOOK_URL_CHARS_MAX is rejected', () => {
    const base = 'https://hooks.example/';
    const longest = base + 'x'.repeat(WEBHOOK_URL_CHARS_MAX - base.length);
    assert.equal(webhookUrlProblem(longest), undefined);
    assert.match(webhookUrlProblem(`${longest}x`) ?? '', /longer/);
  });

  test('a problem never quotes the URL [C-21]', () => {
    for (const url of ['https://user:PLANTED@hooks.example/', 'ftp://PLANTED/', 'PLANTED', `https://x/${'PLANTED'.repeat(400)}`])
      assert.doesNotMatch(webhookUrlProblem(url, closed) ?? 'PLANTED', /PLANTED/);
  });
});

test('by default only https to public addresses is allowed', () => {
  const fromDefaults = webhookRules({
    HOPLINE_WEBHOOK_ALLOW: undefined,
    HOPLINE_WEBHOOK_HTTP: WEBHOOK_SETTINGS.HOPLINE_WEBHOOK_HTTP.default,
  });
  assert.equal(webhookUrlProblem('https://hooks.example/', fromDefaults), undefined);
  assert.equal(webhookUrlProblem('http://hooks.example/', fromDefaults), NOT_HTTPS);
  assert.match(webhookUrlProblem('https://127.0.0.1:9000/', fromDefaults) ?? '', /public/);
});
