import { parseArgs } from 'node:util';
import { connect } from '@nats-io/transport-node';
import { startNats } from '../support/nats/nats-server.ts';
import { REAL_CLOCK } from './clock.ts';
import { compare } from './comparison.ts';
import { NatsDouble } from './nats-double.ts';
import type { Operation } from './operations.ts';
import { connectVirtually, listen, pathOf } from './virtual-network.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    operations: { type: 'string', default: '100000' },
    differences: { type: 'string', default: '1' },
    // Prints the operations and answers that match, until the first difference.
    trace: { type: 'string' },
  },
});
const server = await startNats();
const double = new NatsDouble({ clock: REAL_CLOCK });
const real = await connect({ servers: server.url });
const virtual = await connectVirtually({ servers: listen(double, pathOf(REAL_CLOCK)).url });
const startedAt = performance.now();
const { trace } = values;
const runs = compare(real, virtual, {
  seed: Number(values.seed),
  operations: Number(values.operations),
  ...(trace !== undefined && { onAnswer: printIfMatching(new RegExp(trace)) }),
});
let [compared, differences] = [0, 0];
for await (const { compared: ofRun, difference } of runs) {
  compared += ofRun;
  if (difference === undefined) continue;
  differences += 1;
  const { run, index, operation, real, double } = difference;
  process.stdout.write(`run ${run}, operation ${index}: ${JSON.stringify(operation)}\n`);
  process.stdout.write(`nats-server:\n  ${real.join('\n  ')}\ndouble:\n  ${double.join('\n  ')}\n`);
  process.exitCode = 1;
  if (differences === Number(values.differences)) break;
}
const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
process.stdout.write(`${compared} operations in ${seconds} s, ${differences} differences\n`);
for (const what of double.unsupported) process.stdout.write(`${what}\n`);
await real.close();
await virtual.close();
double.close();
await server.stop();

function printIfMatching(pattern: RegExp) {
  return (operation: Operation, answers: readonly string[]): void => {
    const line = `${JSON.stringify(operation)} -> ${answers.join(' / ')}`;
    if (pattern.test(line)) process.stdout.write(`${line}\n`);
  };
}
