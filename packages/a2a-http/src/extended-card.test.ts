import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, openRig } from './http-server.test-kit.ts';
import { rest } from './rest.test-kit.ts';

test('the extended card is served in every dialect that has one', async t => {
  const rig = await openRig(t, {
    authenticate: async ({ headers }) => ({ subject: String(headers['x-subject']) }),
    extendedCard: ({ subject }, version) => ({ name: `for ${subject}`, version }),
  });
  const headers = { 'x-subject': 'anna' };
  for (const dialect of ['1.0', '0.3'] as const) {
    assert.deepEqual((await call(rig, 'extendedCard', {}, { dialect, headers })).result, { name: 'for anna', version: dialect });
  }
  const { status, body } = await rest(rig, 'GET /extendedAgentCard', { headers });
  assert.deepEqual([status, body], [200, { name: 'for anna', version: '1.0' }]);
  for (const path of ['/agent/authenticatedExtendedCard', '/a2a/agent/authenticatedExtendedCard']) {
    const older = await rest(rig, `GET ${path}`, { headers: { ...headers, 'a2a-version': '' } });
    assert.deepEqual([older.status, older.body], [200, { name: 'for anna', version: '0.3' }], 'the address of 0.2');
    assert.equal((await rest(rig, `GET ${path}`, { headers })).body.data.reason, 'VERSION_NOT_SUPPORTED');
  }
});

test('without an extended card 1.0 and 0.3 have their own errors', async t => {
  const rig = await openRig(t);
  assert.equal((await call(rig, 'extendedCard', {})).error?.code, -32004);
  assert.equal((await call(rig, 'extendedCard', {}, { dialect: '0.3' })).error?.code, -32007);
  assert.equal((await rest(rig, 'GET /extendedAgentCard')).body.error.details[0].reason, 'UNSUPPORTED_OPERATION');
});
