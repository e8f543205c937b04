import { type ListedProcess, type ProcessState, processState, type RunFile, runningCluster } from '@hopline/local-cluster';
import type { Output } from '@hopline/terminal';
import { EXIT, type ExitCode } from './exit-code.ts';

export type StatusRun = {
  json: boolean;
  output: Output;
  environment: Readonly<Record<string, string | undefined>>;
};

type Row = ListedProcess & ProcessState;

/** `hopline status`: prints the processes and agents of the local cluster. Fails when a process is not ready. */
export async function status({ json, output, environment }: StatusRun): Promise<ExitCode> {
  const cluster = runningCluster(environment);
  const rows = await Promise.all(cluster.processes.map(async process => ({ ...process, ...(await processState(process)) })));
  const lines = json ? rows.map(row => JSON.stringify(row)) : report(cluster, rows);
  for (const line of lines) output.line(line);
  return rows.every(({ isReady }) => isReady) ? EXIT.ok : EXIT.failed;
}

function report({ url, nats, logs }: RunFile, rows: readonly Row[]): string[] {
  const processes = rows.map(({ service, instance, pid, url: address, restarts, isReady, fault }) => [
    service,
    instance,
    pid === null ? '-' : `${pid}`,
    portOf(address),
    isReady ? 'ready' : (fault ?? ''),
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
