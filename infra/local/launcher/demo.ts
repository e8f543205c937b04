import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '@hopline/client';
import { kindOfArtifact } from '@hopline/profiles';
import { noticePrinter, StreamPrinter } from '@hopline/terminal';
import { INSTALLATION } from './installation.ts';
import { LaunchError } from './launch-error.ts';
import type { Screen } from './screen.ts';

/** The agents that run without an agents file. */
export const DEMO_AGENTS = join(INSTALLATION.demo, 'agents.json');

/** The demo answer takes about ten seconds. */
const ANSWER_MS_MAX = 120_000;
/** Cursors kept for the resume command. For a longer stream, that command uses one of the first cursors. */
const CURSORS_MAX = 10_000;

export type DemoRun = { taskId: string | null; cursors: string[]; frames: number; firstTextMs: number | null; totalMs: number };

/** The question of the demo. Its agents call a real tool and stream a long text. */
export function demoQuestion(): string {
  const { text } = JSON.parse(readFileSync(join(INSTALLATION.demo, 'question.json'), 'utf8'));
  return text;
}

/** Sends the demo question to `url` with these headers, and prints the stream. Rejects with the client's error, or a LaunchError after 120 s. */
export async function runDemo(
  url: string,
  headers: Record<string, string>,
  screen: Screen,
  signal: AbortSignal,
): Promise<DemoRun> {
  const start = performance.now();
  const late = AbortSignal.timeout(ANSWER_MS_MAX);
  const run: DemoRun = { taskId: null, cursors: [], frames: 0, firstTextMs: null, totalMs: 0 };
  const printer = new StreamPrinter(screen);
  const call = { signal: AbortSignal.any([signal, late]), onNotice: noticePrinter(screen) };
  try {
    for await (const item of createClient({ url, headers }).stream(demoQuestion(), call)) {
      printer.print(item);
      if ('gap' in item) continue;
      const { cursor, event } = item;
      run.frames += 1;
      if (cursor !== undefined && run.cursors.length < CURSORS_MAX) run.cursors.push(cursor);
      if ('task' in event) run.taskId = event.task.id;
      if ('artifactUpdate' in event && kindOfArtifact(event.artifactUpdate.artifact) === 'answer')
        run.firstTextMs ??= performance.now() - start;
    }
  } catch (error) {
    throw late.aborted ? new LaunchError(`no complete answer within ${ANSWER_MS_MAX / 1000} s`) : error;
  }
  run.totalMs = performance.now() - start;
  return run;
}
