import type { Random } from '../../simulator/random.ts';
import { type AgentScript, REMOTE_KINDS, type RemoteKind } from '../../support/agents/scripted-agent.ts';

/** Plan of one client of the campaign. */
export type TaskPlan = {
  name: string;
  profile: 'caipe';
  /** The first message, then an answer to each question. */
  turns: { agents: string[]; scripts: Record<string, AgentScript> }[];
  webhook: 'with the message' | undefined;
  /** Milliseconds after which the client cancels the task. */
  cancelAfterMs: number | undefined;
  /** True if the client cancels instead of answering the first question. */
  cancelsAtQuestion?: boolean;
  /** The first viewer reads the stream of the message, and the others subscribe. Each leaves after this many frames and resumes. */
  viewers: { afterMs: number; leavesAfter: number[] }[];
  /** Reads and lists, each with its delay after the first acknowledgement. `list all`: every page of the tasks of the caller. */
  looks: { afterMs: number; kind: LookKind }[];
  /** Characters of the first message besides its script. */
  ballastChars: number;
  /** A task that continues this one from a point of it, and after how many frames it begins. */
  fork?: { afterFrames: number; plan: TaskPlan };
};

const LOOK_KINDS = ['read', 'read', 'list', 'list all'] as const;
type LookKind = (typeof LOOK_KINDS)[number];

const LOOK_AFTER_MS_MAX = 4_000;
/** Share of longer tasks, which are in mid-stream when faults begin. */
const LONG_SHARE = 0.15;
/** Share of the questions that the client answers with a cancel. */
const CANCELS_SHARE = 0.33;
/** Text that takes far longer than a canceled run may continue (CANCELED_RUN_MS_MAX). */
const TALKS_ON = { tokens: 1_500, everyMs: 30 };

export type WorkloadOptions = {
  /** Share of tasks with a large first message. */
  ballastShare?: number;
  /** Share of long texts. */
  longShare?: number;
  /** Agents of every kind, silent ones among them, and clients that do everything more often, forks included. */
  isMixed?: boolean;
};

/** Agents that ask questions, and so take part in tasks with several turns. */
const ASKING = ['writer', 'reader'];
const EVERY_AGENT = ['writer', 'reader', 'graph', 'thinker'];
const FORKS_SHARE = 0.15;
const SILENT_SHARE = 0.1;
/** Share of the runs of the writer that begin with stored steps, and how long one of these takes. */
const STEPS_SHARE = 0.5;
const STEP_MS = { min: 50, max: 1_500 };
/** Times shorter and longer than that after which the item of a silent worker goes to another one. */
const SILENT_MS = { min: 2_000, max: 9_000 };

/** Shares of the tasks of a class, and of the mixed one. */
const SHARES = { questions: 0.08, two: 0.12, second: 0.2, webhook: 0.1, cancels: 0.05, looks: 0.4 };
const MIXED_SHARES: typeof SHARES = { questions: 0.2, two: 0.15, second: 0.3, webhook: 0.25, cancels: 0.12, looks: 0.7 };

export function taskPlan(random: Random, name: string, options: WorkloadOptions = {}): TaskPlan {
  const { ballastShare = 0, isMixed = false } = options;
  const plan = planWithoutFork(random, name, options);
  const ballastChars = random.chance(ballastShare) ? 256 * 1024 : 0;
  if (!isMixed || !random.chance(FORKS_SHARE)) return { ...plan, ballastChars };
  const fork = { afterFrames: random.between(1, 40), plan: planWithoutFork(random, `${name}-fork`, options) };
  return { ...plan, ballastChars, fork };
}

function planWithoutFork(random: Random, name: string, { longShare = LONG_SHARE, isMixed = false }: WorkloadOptions): TaskPlan {
  const shares = isMixed ? MIXED_SHARES : SHARES;
  const questions = random.chance(shares.questions) ? random.between(1, 2) : 0;
  const single = () => random.pick(isMixed && questions === 0 ? EVERY_AGENT : random.chance(0.7) ? ['writer'] : ['reader']);
  const agents = random.chance(shares.two) ? ASKING : [single()];
  const remote = random.pick(REMOTE_KINDS);
  const turns = Array.from({ length: questions + 1 }, (_, turn) => ({
    agents: turn === 0 ? agents : agents.slice(0, 1),
    scripts: Object.fromEntries(
      agents.map((agent, index) => {
        const asks = turn < questions && index === 0;
        return [agent, scriptOf(random, { agent, remote, asks, longShare, isMixed })];
      }),
    ),
  }));
  // The first viewer of every third task never leaves: the time to flow again is measured there.
  const leavesAfter = () => Array.from({ length: random.between(0, 2) }, () => random.between(1, 12));
  const viewers = [{ afterMs: 0, leavesAfter: leavesAfter() }];
  if (random.chance(shares.second)) viewers.push({ afterMs: random.between(0, 1_000), leavesAfter: leavesAfter() });
  const webhook = random.chance(shares.webhook) ? 'with the message' : undefined;
  const cancelAfterMs = random.chance(shares.cancels) ? random.between(0, 1_500) : undefined;
  // The other half of the canceled tasks may end while the cancel is on its way.
  if (cancelAfterMs !== undefined && random.chance(0.5))
    for (const script of turns.flatMap(({ scripts }) => Object.values(scripts))) Object.assign(script, TALKS_ON);
  const cancelsAtQuestion = questions > 0 && random.chance(CANCELS_SHARE);
  const looks = Array.from({ length: random.chance(shares.looks) ? random.between(1, 4) : 0 }, () => ({
    afterMs: random.between(0, LOOK_AFTER_MS_MAX),
    kind: random.pick(LOOK_KINDS),
  }));
  return { name, profile: 'caipe', turns, webhook, cancelAfterMs, cancelsAtQuestion, viewers, looks, ballastChars: 0 };
}

type Role = { agent: string; remote: RemoteKind; asks: boolean; longShare: number; isMixed: boolean };

function scriptOf(random: Random, { agent, remote, asks, longShare, isMixed }: Role): AgentScript {
  const isLong = random.chance(longShare);
  const script: AgentScript = {
    tokens: isLong ? random.between(200, 400) : random.between(30, 100),
    everyMs: random.pick([15, 20, 30]),
    end: asks ? 'asks' : 'done',
    ...(agent === 'reader' && { remote }),
    ...(isMixed && random.chance(SILENT_SHARE) && { silentMs: random.between(SILENT_MS.min, SILENT_MS.max) }),
    ...(isMixed && agent === 'writer' && random.chance(STEPS_SHARE) && stepsOf(random)),
  };
  if (asks || !ASKING.includes(agent)) return script;
  // Only a module agent can mark a failure as retryable.
  if (random.chance(0.05)) script.end = agent === 'writer' ? random.pick(['fails', 'fails once']) : 'fails';
  if (script.steps !== undefined && script.end === 'fails once') script.failsInStep = true;
  // Only a module agent can send half a surrogate pair; over HTTP, remote agents send whole characters.
  if (agent === 'writer' && random.chance(0.1)) script.splitsPairs = true;
  return script;
}

/** Steps with effects before the text. */
function stepsOf(random: Random): Pick<AgentScript, 'steps' | 'stepMs'> {
  return { steps: random.between(1, 4), stepMs: random.between(STEP_MS.min, STEP_MS.max) };
}
