import { type ListedProcess, type ProcessState, processState, type RunFile, runningCluster } from '@hopline/local-cluster';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';

type Row = ListedProcess & ProcessState;

export const status = command({
  name: 'status',
  summary: 'lists the processes and agents of the local cluster: process id, port, state, restarts',
  details: 'reads run.json in the home of `npm start` (HOPLINE_HOME); exit code 1 when a process is not ready',
  asksNoServer: true,
  options: {},
  async run(_given, { json, output, environment }) {
    const cluster = runningCluster(environment);
    const rows = await Promise.all(cluster.processes.map(async process => ({ ...process, ...(await processState(process)) })));
    const lines = json ? rows.map(row => JSON.stringify(row)) : report(cluster, rows);
    for (const line of lines) output.line(line);
    return rows.every(({ isReady }) => isReady) ? EXIT.ok : EXIT.failed;
  },
});

function report({ url, nats, logs }: RunFile, rows: readonly Row[]): string[] {
  const processes = rows.map(({ service, instance, pid, url: address, restarts, isReady, fault, agent }) => [
    service,
    instance,
    pid === null ? '-' : `${pid}`,
    portOf(address),
    isReady ? `ready${agent === undefined && fault !== null ? `, but ${fault}` : ''}` : (fault ?? ''),
    `${restarts}`,
  ]);
  const agents = rows.flatMap(({ agent, fault }) => (agent === undefined ? [] : [[agent.name, fault ?? 'ready']]));
  const isOwn = rows.some(({ service }) => service === 'nats');
  return [
    `Hopline ${url}   NATS ${nats}${isOwn ? '' : ' (not started by Hopline)'}   logs ${logs}`,
    '',
    ...table([['SERVICE', 'INSTANCE', 'PID', 'PORT', 'STATE', 'RESTARTS'], ...processes]),
    '',
    ...table([['AGENT', 'STATE'], ...agents]),
  ];
}

function portOf(url: string): string {
  return URL.canParse(url) ? new URL(url).port : '-';
}

function table(rows: readonly string[][]): string[] {
  const widths = rows.reduce<number[]>((widest, row) => row.map((cell, i) => Math.max(cell.length, widest[i] ?? 0)), []);
  return rows.map(row =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
