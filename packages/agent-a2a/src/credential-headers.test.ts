import assert from 'node:assert/strict';
import { test } from 'node:test';
import { credentialHeaders, type EntryHeaders } from './credential-headers.ts';

const VARIABLES: Record<string, string> = { TOKEN: 't', KEY: 'k', ORG: 'o', EMPTY: '', BROKEN: 'secret“' };
const secret = (variable: string) => VARIABLES[variable];

test('the headers are those written in the entry and those from its variables', () => {
  const headers = { 'x-team': 'ops' };
  const entries: [EntryHeaders, Record<string, string>][] = [
    [{}, {}],
    [{ headers }, headers],
    [
      { headers, headersEnv: { 'x-org': 'ORG' }, auth: { bearerEnv: 'TOKEN' } },
      { ...headers, 'x-org': 'o', authorization: 'Bearer t' },
    ],
    [{ auth: { apiKeyEnv: 'KEY' } }, { 'x-api-key': 'k' }],
    [{ auth: { apiKeyEnv: 'KEY', header: 'X-Key' } }, { 'x-key': 'k' }],
  ];
  for (const [entry, expected] of entries) assert.deepEqual(credentialHeaders(entry, secret), expected);
});

test('an unset variable throws or is left out, and a value that no header can have throws; neither error contains name or value', () => {
  for (const variable of ['ABSENT', 'EMPTY']) {
    const entry = { headers: { a: 'b' }, headersEnv: { 'x-org': variable }, auth: { bearerEnv: variable } };
    assert.throws(() => credentialHeaders(entry, secret), { message: 'the variable that headersEnv.x-org names is not set' });
    assert.deepEqual(credentialHeaders(entry, secret, 'omit'), { a: 'b' });
  }
  for (const unset of ['throw', 'omit'] as const)
    assert.throws(() => credentialHeaders({ auth: { apiKeyEnv: 'BROKEN' } }, secret, unset), {
      message: 'the variable that auth.apiKeyEnv names contains characters that a header cannot have',
    });
});
