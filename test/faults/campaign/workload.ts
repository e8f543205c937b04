import type { Random } from '../../simulator/random.ts';
import { type AgentScript, REMOTE_KINDS, type RemoteKind } from '../../support/agents/scripted-agent.ts';

/** What one client of the campaign does. */
export type TaskPlan = {
  name: string;
  profile: 'caipe';
  /** The first message, then an answer to each question. */
  turns: { agents: string[]; scripts: Record<string, AgentScript> }[];
  webhook: 'with the message' | undefined;
  /** After the first frame. */
  cancelAfterMs: number | undefined;
  /** The first viewer reads the stream of the message, the others subscribe. Each leaves after so many frames, and resumes. */
  viewers: { afterMs: number; leavesAfter: number[] }[];
  /** Characters of the first message besides its script. */
  ballastChars: number;
};

/** Longer tasks are in mid-stream while faults begin; they are this share of all. */
const LONG_SHARE = 0.15;

export function taskPlan(random: Random, name: string, ballastShare = 0): TaskPlan {
  const questions = random.chance(0.08) ? random.between(1, 2) : 0;
  const agents = random.chance(0.12) ? ['writer', 'reader'] : [random.chance(0.7) ? 'writer' : 'reader'];
  const remote = random.pick(REMOTE_KINDS);
  const turns = Array.from({ length: questions + 1 }, (_, turn) => ({
    agents: turn === 0 ? agents : agents.slice(0, 1),
    scripts: Object.fromEntries(
      agents.map((agent, index) => [agent, scriptOf(random, { agent, remote, asks: turn < questions && index === 0 })]),
    ),
  }));
  // The first viewer of every third task never leaves: the time to flow again is measured there.
  const leavesAfter = () => Array.from({ length: random.between(0, 2) }, () => random.between(1, 12));
  const viewers = [{ afterMs: 0, leavesAfter: leavesAfter() }];
  if (random.chance(0.2)) viewers.push({ afterMs: random.between(0, 1_000), leavesAfter: leavesAfter() });
  return {
    name,
    profile: 'caipe',
    turns,
    webhook: random.chance(0.1) ? 'with the message' : undefined,
    cancelAfterMs: random.chance(0.05) ? random.between(0, 1_500) : undefined,
    viewers,
    ballastChars: random.chance(ballastShare) ? 256 * 1024 : 0,
  };
}

type Role = { agent: string; remote: RemoteKind; asks: boolean };

function scriptOf(random: Random, { agent, remote, asks }: Role): AgentScript {
  const isLong = random.chance(LONG_SHARE);
  const script: AgentScript = {
    tokens: isLong ? random.between(200, 400) : random.between(30, 100),
    everyMs: random.pick([15, 20, 30]),
    end: asks ? 'asks' : 'done',
    ...(agent === 'reader' && { remote }),
  };
  if (asks) return script;
  // Only a module agent can mark a failure as retryable.
  if (random.chance(0.05)) script.end = agent === 'writer' ? random.pick(['fails', 'fails once']) : 'fails';
  // Half a surrogate pair passes a module agent only; over HTTP, remote agents send whole characters.
  if (agent === 'writer' && random.chance(0.1)) script.splitsPairs = true;
  return script;
}
