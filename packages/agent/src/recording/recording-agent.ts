import { setTimeout as delay } from 'node:timers/promises';
import type { AgentSkill } from '@hopline/a2a';
import type { Agent, AgentEvent, Turn } from '../agent.ts';
import { dueTimes, type Pace } from './pace.ts';
import { loadRecording } from './recording.ts';

/** Which recording an agent plays, and how fast. */
export type RecordingOptions = {
  /** Path of a file of JSON lines, described in the README. It is read once, when the agent is created. */
  path: string;
  /** Default: `recorded` when every text line has its time, else `packets`. */
  pace?: Pace;
  description?: string;
};

const SKILL: AgentSkill = { id: 'playback', name: 'Playback', description: 'Plays a recorded answer', tags: ['recording'] };

/** An agent that answers every message with the same recorded stream. Rejects with RecordingError when the file cannot be played. */
export async function createRecordingAgent(options: RecordingOptions): Promise<Agent> {
  const recording = await loadRecording(options.path);
  const pace = options.pace ?? (recording.offsetsMs ? 'recorded' : 'packets');
  const due = dueTimes(recording, pace);
  return {
    description: options.description ?? 'Plays a recorded answer token by token.',
    skills: async () => [SKILL],
    run: turn => play(recording.tokens, due, turn),
    close: async () => {},
  };
}

async function* play(tokens: string[], due: (index: number) => number, turn: Turn): AsyncGenerator<AgentEvent> {
  const start = performance.now();
  for (const [index, text] of tokens.entries()) {
    // Measured from the start of the turn, not from the previous token, so that a late timer does not slow the stream down.
    const waitMs = due(index) - (performance.now() - start);
    if (waitMs > 0) await delay(waitMs, undefined, { signal: turn.signal });
    if (turn.signal.aborted) return;
    // The attempt is part of the id, because the tokens of a second attempt are new, not repeated deliveries of the first attempt's tokens.
    yield { type: 'text', text, id: `${turn.attempt}.${index}` };
  }
  yield { type: 'done' };
}
