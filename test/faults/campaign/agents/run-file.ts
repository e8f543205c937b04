import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentTurn } from '@hopline/agent';
import {
  type AgentRun,
  type AgentScript,
  type PassedStep,
  type RunRecorder,
  tokensOf,
} from '../../../support/agents/scripted-agent.ts';

/** Variable with the folder of the run files. */
export const RUNS_FOLDER = 'CAMPAIGN_RUNS';

type Line =
  /** `parent`: the service whose code host this process may be. It dies with its service. */
  | { begin: Omit<AgentRun, 'tokens' | 'fullText'>; script: AgentScript; parent: number }
  | { effect: string; of: number }
  | { passed: PassedStep; of: number }
  | { end: number; at: number };

/** A clock that all processes share and that is unaffected when the system clock is set. */
export const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6;

/** Number of run ids reserved for one process: more runs than it starts in a campaign. */
const RUNS_OF_PROCESS_MAX = 100_000;

/** Writes the runs of this process, and the effects of their steps, to a file of its own, at once: the process may be killed at any moment. */
export class RunFile implements RunRecorder {
  readonly #path: string;
  #count = 0;

  constructor(folder: string) {
    this.#path = join(folder, `${process.pid}.jsonl`);
  }

  begin(agent: string, { message, attempt }: Pick<AgentTurn, 'message' | 'attempt'>, script: AgentScript): AgentRun {
    const id = process.pid * RUNS_OF_PROCESS_MAX + this.#count++;
    const { messageId, taskId = '' } = message;
    const begin = {
      id,
      agent,
      taskId,
      messageId,
      attempt,
      process: `${process.pid}`,
      startedAt: monotonicMs(),
      endedAt: undefined,
    };
    this.#write({ begin, script, parent: process.ppid });
    return { ...begin, tokens: [], fullText: '' };
  }

  addEffect({ id }: AgentRun, key: string): void {
    this.#write({ effect: key, of: id });
  }

  addPassed({ id }: AgentRun, step: PassedStep): void {
    this.#write({ passed: step, of: id });
  }

  end({ id }: AgentRun): void {
    this.#write({ end: id, at: monotonicMs() });
  }

  #write(line: Line): void {
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`);
  }
}

/**
 * The runs of all processes. It is unknown which tokens a killed process has emitted, so `tokens` has all that it would have emitted.
 * `deaths`: when the process with an id was killed, by `monotonicMs`.
 */
export function readRuns(folder: string, deaths: ReadonlyMap<number, number>): AgentRun[] {
  const runs = new Map<number, AgentRun>();
  const paths = readdirSync(folder).filter(name => name.endsWith('.jsonl'));
  const texts = paths.map(name => readFileSync(join(folder, name), 'utf8'));
  // The last line of a killed process may be cut off.
  const lines = texts.flatMap(text => text.slice(0, text.lastIndexOf('\n')).split('\n'));
  for (const line of lines.filter(text => text !== '')) {
    const read = JSON.parse(line) as Line;
    if (!('begin' in read)) {
      // Its beginning is in the same file.
      const run = runs.get('end' in read ? read.end : read.of)!;
      if ('end' in read) run.endedAt = read.at;
      else if ('effect' in read) run.effects = [...(run.effects ?? []), read.effect];
      else run.passed = [...(run.passed ?? []), read.passed];
      continue;
    }
    const tokens = tokensOf(read.begin.id, read.script);
    runs.set(read.begin.id, {
      ...read.begin,
      tokens,
      fullText: tokens.join(''),
      endedAt: deaths.get(Number(read.begin.process)) ?? deaths.get(read.parent),
    });
  }
  return [...runs.values()];
}
