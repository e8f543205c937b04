import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { writeTask } from '@hopline/task-file';
import { exportTask } from '@hopline/task-transfer';
import { simulate } from '../../simulator/simulate.ts';
import { EPOCH_MS } from '../../simulator/virtual-clock.ts';
import { GOLDEN } from './golden-tasks.ts';

/**
 * Records the golden tasks of this version into the folder `test/replay/golden/<version>/`, by running the services' code in virtual time.
 * Never overwrites a file, because records of an earlier version must stay readable as they are.
 */
const root = new URL('../../../', import.meta.url);
const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { version: string };
const folder = fileURLToPath(new URL(`test/replay/golden/${version}/`, root));
mkdirSync(folder, { recursive: true });

for (const { name, scenario } of GOLDEN) {
  const path = `${folder}${name}.hopline.jsonl`;
  if (existsSync(path)) {
    process.stdout.write(`kept     ${path}\n`);
    continue;
  }
  let lines = '';
  const { violations } = await simulate(scenario, {
    onEnd: async (cluster, [client]) => {
      const task = await exportTask(cluster.log, client!.taskId!, {
        hopline: version,
        contains: ['inputs', 'facts'],
        now: EPOCH_MS,
      });
      for await (const line of writeTask(task!.header, task!.records(), task!)) lines += line;
    },
  });
  if (violations.length > 0) throw new Error(`${name}: ${violations[0]!.rule}: ${violations[0]!.detail}`);
  writeFileSync(path, lines);
  process.stdout.write(`recorded ${path}\n`);
}
process.exit();
