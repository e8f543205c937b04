import { parseArgs } from 'node:util';
import { connect } from '@nats-io/transport-node';
import { startNats } from '../support/nats/nats-server.ts';
import { REAL_CLOCK } from './clock.ts';
import { compare } from './comparison.ts';
import { NatsDouble } from './nats-double.ts';
import { connectVirtually, listen, pathOf } from './virtual-network.ts';

const { values } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, operations: { type: 'string', default: '100000' } },
});
const server = await startNats();
const double = new NatsDouble({ clock: REAL_CLOCK });
const real = await connect({ servers: server.url });
const virtual = await connectVirtually({ servers: listen(double, pathOf(REAL_CLOCK)).url });
const startedAt = performance.now();
const result = await compare(real, virtual, { seed: Number(values.seed), operations: Number(values.operations) });
const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
process.stdout.write(`${result.compared} operations in ${seconds} s\n`);
const { difference } = result;
if (difference !== undefined) {
  const { run, index, operation } = difference;
  process.stdout.write(`run ${run}, operation ${index}: ${JSON.stringify(operation)}\n`);
  process.stdout.write(`nats-server:\n  ${difference.real.join('\n  ')}\ndouble:\n  ${difference.double.join('\n  ')}\n`);
  process.exitCode = 1;
}
for (const what of double.unsupported) process.stdout.write(`${what}\n`);
await real.close();
await virtual.close();
double.close();
await server.stop();
