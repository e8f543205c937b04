import { type Recording, RecordingError } from './recording.ts';

/**
 * How fast a recording plays. `recorded`: at the times in the file. A number: that many tokens per second, evenly. `burst`: as fast as they
 * are taken. `packets`: 50 tokens per second on average, in packets of 1 to 12 tokens, as model providers send them; the packets are the
 * same in every run.
 */
export type Pace = 'recorded' | 'burst' | 'packets' | number;

/** Maximum tokens per second. */
export const PACE_MAX = 100_000;
const PACKET_TOKENS_MAX = 12;
const PACKET_MS_PER_TOKEN = 20;

/** When each token is due: milliseconds after the turn's start. Throws RecordingError when the recording has no times for `recorded`. */
export function dueTimes(recording: Recording, pace: Pace): (index: number) => number {
  if (pace === 'burst') return () => 0;
  if (pace === 'packets') return packetTimes(recording.tokens.length);
  if (pace === 'recorded') {
    const { offsetsMs } = recording;
    if (offsetsMs === undefined) throw new RecordingError('pace "recorded" needs "ms" on every text line of the recording');
    return index => offsetsMs[index] ?? 0;
  }
  if (!(pace > 0 && pace <= PACE_MAX)) throw new RecordingError(`pace must be above 0 and at most ${PACE_MAX} tokens per second`);
  return index => (index * 1000) / pace;
}

function packetTimes(tokens: number): (index: number) => number {
  const due = new Float64Array(tokens);
  let random = 1;
  let at = 0;
  for (let index = 0; index < tokens; ) {
    // xorshift32: packet sizes that resemble a provider's but are the same in every run.
    random ^= random << 13;
    random ^= random >>> 17;
    random ^= random << 5;
    const size = 1 + ((random >>> 0) % PACKET_TOKENS_MAX);
    due.fill(at, index, Math.min(index + size, tokens));
    at += size * PACKET_MS_PER_TOKEN;
    index += size;
  }
  return index => due[index] ?? at;
}
