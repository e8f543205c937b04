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
  /** The first viewer reads the stream of the message, the others subscribe. Each leaves after so many frames, and resumes. */
  viewers: { afterMs: number; leavesAfter: number[] }[];
  /** Characters of the first message besides its script. */
  ballastChars: number;
};

/** Longer tasks are in mid-stream while faults begin; they are this share of all. */
const LONG_SHARE = 0.15;
/** Share of the questions that the client answers with a cancel. */
const CANCELS_SHARE = 0.33;
/** Text that takes far longer than a canceled run may continue (CANCELED_RUN_MS_MAX). */
const TALKS_ON = { tokens: 1_500, everyMs: 30 };

export type WorkloadOptions = { ballastShare?: number; longShare?: number };

export function taskPlan(random: Random, name: string, { ballastShare = 0, longShare = LONG_SHARE }: WorkloadOptions): TaskPlan {
  const questions = random.chance(0.08) ? random.between(1, 2) : 0;
  const agents = random.chance(0.12) ? ['writer', 'reader'] : [random.chance(0.7) ? 'writer' : 'reader'];
  const remote = random.pick(REMOTE_KINDS);
  const turns = Array.from({ length: questions + 1 }, (_, turn) => ({
    agents: turn === 0 ? agents : agents.slice(0, 1),
    scripts: Object.fromEntries(
      agents.map((agent, index) => {
        const asks = turn < questions && index === 0;
        return [agent, scriptOf(random, { agent, remote, asks, longShare })];
      }),
    ),
  }));
  // The first viewer of every third task never leaves: the time to flow again is measured there.
  const leavesAfter = () => Array.from({ length: random.between(0, 2) }, () => random.between(1, 12));
  const viewers = [{ afterMs: 0, leavesAfter: leavesAfter() }];
  if (random.chance(0.2)) viewers.push({ afterMs: random.between(0, 1_000), leavesAfter: leavesAfter() });
  const webhook = random.chance(0.1) ? 'with the message' : undefined;
  const cancelAfterMs = random.chance(0.05) ? random.between(0, 1_500) : undefined;
  // The other half of the canceled tasks may end while the cancel is on its way.
  if (cancelAfterMs !== undefined && random.chance(0.5))
    for (const script of turns.flatMap(({ scripts }) => Object.values(scripts))) Object.assign(script, TALKS_ON);
  const cancelsAtQuestion = questions > 0 && random.chance(CANCELS_SHARE);
  const ballastChars = random.chance(ballastShare) ? 256 * 1024 : 0;
  return { name, profile: 'caipe', turns, webhook, cancelAfterMs, cancelsAtQuestion, viewers, ballastChars };
}

type Role = { agent: string; remote: RemoteKind; asks: boolean; longShare: number };

function scriptOf(random: Random, { agent, remote, asks, longShare }: Role): AgentScript {
  const isLong = random.chance(longShare);
  const script: AgentScript = {
    tokens: isLong ? random.between(200, 400) : random.between(30, 100),
    everyMs: random.pick([15, 20, 30]),
    end: asks ? 'asks' : 'done',
    ...(agent === 'reader' && { remote }),
  };
  if (asks) return script;
  // Only a module agent can mark a failure as retryable.
  if (random.chance(0.05)) script.end = agent === 'writer' ? random.pick(['fails', 'fails once']) : 'fails';
  // Only a module agent can send half a surrogate pair; over HTTP, remote agents send whole characters.
  if (agent === 'writer' && random.chance(0.1)) script.splitsPairs = true;
  return script;
}
