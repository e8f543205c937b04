import assert from 'node:assert/strict';
import { describeLogContract } from '../integration/log/contract/contract.ts';
import { type Broker, jetStreamUnderTest } from '../integration/log/contract/jetstream-under-test.ts';
import { REAL_CLOCK } from './clock.ts';
import { NatsDouble } from './nats-double.ts';
import { connectVirtually, listen, pathOf } from './virtual-network.ts';

/** The package that runs on nats-server in production runs on the double here, unchanged. */
function doubleBroker(): Broker {
  const double = new NatsDouble({ clock: REAL_CLOCK });
  const [direct, port] = [listen(double, pathOf(REAL_CLOCK)), listen(double, pathOf(REAL_CLOCK))];
  const close = async () => {
    double.close();
    assert.deepEqual(double.unsupported, []);
  };
  return { url: direct.url, port, connect: connectVirtually, close };
}

describeLogContract('JetStream on the double', options => jetStreamUnderTest(doubleBroker(), options));
describeLogContract(
  'JetStream on the double with 4 stream groups',
  options => jetStreamUnderTest(doubleBroker(), { ...options, groups: 4 }),
  { onlyRecords: true },
);
