import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OTHER_VARIABLES, unknownSettings } from './unknown-settings.ts';

const OWN = ['HOPLINE_HOST', 'TEST_KEY'];

test('an unknown HOPLINE_ variable is reported, with the setting that it resembles', () => {
  const env = { HOPLINE_FOO_BAR_BAZ: '1', HOPLINE_AUTH_ISSUR: 'x', HOPLINE_LEASEMS: '5000' };
  assert.deepEqual(unknownSettings(env, OWN), [
    'HOPLINE_FOO_BAR_BAZ is not a setting of Hopline',
    'HOPLINE_AUTH_ISSUR is not a setting of Hopline; did you mean HOPLINE_AUTH_ISSUER?',
    'HOPLINE_LEASEMS is not a setting of Hopline; did you mean HOPLINE_LEASE_MS?',
  ]);
});

test('settings of any service, variables of other programs, and names without the prefix are known', () => {
  const others = Object.fromEntries(OTHER_VARIABLES.map(name => [name, 'x']));
  const env = {
    ...others,
    HOPLINE_LEASE_MS: '5000',
    HOPLINE_CONSOLE_WRITES: 'true',
    TEST_OTHER: '1',
    PATH: '/bin',
    HOPLINEX: '1',
  };
  assert.deepEqual(unknownSettings(env, OWN), []);
  assert.deepEqual(unknownSettings({ HOPLINE_FOO: '' }, OWN), [], 'an empty value counts as not set');
});

test('variables that Kubernetes adds to a pod for a Service are known, a setting that resembles one is not', () => {
  const links = {
    HOPLINE_INGRESS_SERVICE_HOST: '10.96.0.7',
    HOPLINE_INGRESS_SERVICE_PORT: '8000',
    HOPLINE_INGRESS_SERVICE_PORT_HTTP: '8000',
    HOPLINE_INGRESS_PORT: 'tcp://10.96.0.7:8000',
    HOPLINE_INGRESS_PORT_8000_TCP: 'tcp://10.96.0.7:8000',
    HOPLINE_INGRESS_PORT_8000_TCP_PROTO: 'tcp',
    HOPLINE_INGRESS_PORT_8000_TCP_PORT: '8000',
    HOPLINE_INGRESS_PORT_8000_TCP_ADDR: 'fd00::7',
    HOPLINE_SERVICE_HOST: '10.96.0.8',
    HOPLINE_PORT_9000_UDP: 'udp://10.96.0.8:9000',
  };
  assert.deepEqual(unknownSettings(links, OWN), []);
  assert.equal(unknownSettings({ HOPLINE_GRPC_SERVICE_HOST: 'a.example.com' }, OWN).length, 1);
});
