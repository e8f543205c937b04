import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';
import { describeLogContract } from './contract/contract.ts';
import { type Broker, jetStreamUnderTest } from './contract/jetstream-under-test.ts';

async function startBroker(): Promise<Broker> {
  const server = await startNats();
  const port = await startNatsProxy(server.port);
  const close = async () => {
    await port.close();
    await server.stop();
  };
  return { url: server.url, port, close };
}

describeLogContract('JetStream', async options => jetStreamUnderTest(await startBroker(), options));
describeLogContract(
  'JetStream with 4 stream groups',
  async options => jetStreamUnderTest(await startBroker(), { ...options, groups: 4 }),
  { onlyRecords: true },
);
