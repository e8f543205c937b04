import { openJetStreamLog } from '@hopline/log-jetstream';
import { TaskTable } from './task-table.ts';

/** `node infra/examples/projection/main.ts tasks.sqlite`: brings the table up to date and prints how fast. */
const [path = 'tasks.sqlite'] = process.argv.slice(2);
const { NATS_URL = 'nats://127.0.0.1:4222', NATS_USER: user, NATS_PASSWORD: pass = '', HOPLINE_PREFIX: prefix } = process.env;

const credentials = user === undefined ? {} : { credentials: { user, pass }, user: 'operator' as const };
const log = await openJetStreamLog({ servers: NATS_URL, name: 'projection', ...credentials, ...(prefix && { prefix }) });
const table = new TaskTable(path);
const started = performance.now();
const { records, tokens } = await table.update(log);
const seconds = (performance.now() - started) / 1_000;
process.stdout.write(
  `${records} records with ${tokens} tokens in ${seconds.toFixed(1)} s: ${Math.round(records / seconds)} records/s\n`,
);
table.close();
await log.close();
