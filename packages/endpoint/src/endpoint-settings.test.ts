import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineServiceConfig } from '@hopline/lifecycle';
import { ENDPOINT_SETTINGS, withEndpointChecked } from './endpoint-settings.ts';

test('incomplete TLS settings are reported by name [S4-42]', () => {
  const { load } = withEndpointChecked(defineServiceConfig(ENDPOINT_SETTINGS));
  const [cert, key, ca] = [{ HOPLINE_TLS_CERT_FILE: 'c' }, { HOPLINE_TLS_KEY_FILE: 'k' }, { HOPLINE_TLS_CLIENT_CA_FILE: 'a' }];
  for (const env of [cert, key])
    assert.throws(() => load(env), /HOPLINE_TLS_CERT_FILE and HOPLINE_TLS_KEY_FILE must be set together/);
  assert.throws(() => load(ca), /HOPLINE_TLS_CLIENT_CA_FILE needs HOPLINE_TLS_CERT_FILE/);
  assert.throws(() => load({ HOPLINE_TLS_VERSION_MIN: 'TLSv1.1' }), /one of TLSv1.2, TLSv1.3/);
  assert.equal(load({ ...cert, ...key, ...ca }).HOPLINE_TLS_VERSION_MIN, 'TLSv1.2');
});
