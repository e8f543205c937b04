import assert from 'node:assert/strict';
import test from 'node:test';
import { LogMismatch } from '@hopline/log';
import { hasAgentAccounts, requireServer } from './capabilities.ts';

test('one replica needs 2.9.0, several need 2.11.0; older servers are rejected with advice', () => {
  for (const version of ['2.9.0', '2.9.10', '2.10.29', '2.15.2', '2.16.0-dev', 'v3.0.0']) requireServer(version, 1);
  for (const version of ['2.11.0', '2.15.2', '2.11.0-RC.1']) requireServer(version, 3);
  for (const version of ['2.8.4', '1.4.1', 'unknown', '']) assert.throws(() => requireServer(version, 1), LogMismatch);
  assert.throws(() => requireServer('2.10.29', 3), /3 replicas need 2\.11\.0 or newer; use 1 replica or a newer server/);
});

test('agents may have accounts of their own from 2.10.0 on', () => {
  for (const version of ['2.10.0', '2.15.2']) assert.ok(hasAgentAccounts(version), version);
  for (const version of ['2.9.25', '2.9.10', '', 'unknown']) assert.ok(!hasAgentAccounts(version), version);
});
