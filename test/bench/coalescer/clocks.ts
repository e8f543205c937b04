import type { Random } from './random.ts';

/** Arrival times of `count` tokens in ms, never decreasing. */
export type Clock = (count: number, random: Random) => number[];

/** Tokens of a provider packet: 1 to 12, uniformly. */
function packetSize(random: Random): number {
  return 1 + Math.floor(random() * 12);
}

function spaced(gapMs: (random: Random) => number): Clock {
  return (count, random) => {
    let at = 0;
    return Array.from({ length: count }, () => (at += gapMs(random)));
  };
}

const steady = (perSecond: number) => spaced(() => 1000 / perSecond);
const jittered = (perSecond: number) => spaced(random => (1000 / perSecond) * (0.5 + random()));
/** Exponential gaps have no pattern to learn, which makes this the hardest source at its mean rate. */
const patternless = (perSecond: number) => spaced(random => (-1000 / perSecond) * Math.log(1 - random()));

/** Packets 20 to 250 ms apart, one in fifty followed by a pause of 1 to 3 s; tokens of a packet up to `insideMs` apart. */
function packets(insideMs: number): Clock {
  return (count, random) => {
    const times: number[] = [];
    for (let at = 0; times.length < count; at += random() < 0.02 ? 1000 + 2000 * random() : 20 + 230 * random()) {
      for (let left = packetSize(random); left > 0 && times.length < count; left--) {
        times.push(at);
        if (left > 1) at += insideMs * random();
      }
    }
    return times;
  };
}

const SILENCE_MS = 17_800;
const BURST_TOKENS = 290;
const BURST_MS = 400;

/** 17.8 s of silence, then 290 tokens in 0.4 s, repeatedly; `inside` gives the times within one burst, sorted, from 0 to 400. */
function bursts(inside: (count: number, random: Random) => number[]): Clock {
  return (count, random) => {
    const times: number[] = [];
    for (let at = SILENCE_MS; times.length < count; at += SILENCE_MS + BURST_MS) {
      const size = Math.min(BURST_TOKENS, count - times.length);
      for (const offset of inside(BURST_TOKENS, random).slice(0, size)) times.push(at + offset);
    }
    return times;
  };
}

function packedBurst(count: number, random: Random): number[] {
  const times: number[] = [];
  while (times.length < count) {
    const at = BURST_MS * random();
    for (let left = packetSize(random); left > 0 && times.length < count; left--) times.push(at);
  }
  return times.sort((a, b) => a - b);
}

/** The clocks of the bench. The first part of a name groups them. */
export const CLOCKS: Readonly<Record<string, Clock>> = {
  'steady 15/s': steady(15),
  'steady 50/s': steady(50),
  'steady 200/s': steady(200),
  'steady 500/s': steady(500),
  'jittered 15/s': jittered(15),
  'jittered 50/s': jittered(50),
  'jittered 200/s': jittered(200),
  'jittered 500/s': jittered(500),
  'patternless 15/s': patternless(15),
  'patternless 50/s': patternless(50),
  'patternless 200/s': patternless(200),
  'patternless 500/s': patternless(500),
  'packets, at once': packets(0),
  'packets, 0.6 ms': packets(0.6),
  'packets, 2 ms': packets(2),
  'burst, even': bursts((count, _random) => Array.from({ length: count }, (_, index) => (index * BURST_MS) / count)),
  'burst, random': bursts((count, random) => Array.from({ length: count }, () => BURST_MS * random()).sort((a, b) => a - b)),
  'burst, packets': bursts(packedBurst),
};

/** Clocks whose next gap, in a burst too, does not depend on earlier gaps, so that no rule can foresee it. */
const PATTERNLESS = ['patternless', 'burst, random', 'burst, packets'];

export function hasStructure(clock: string): boolean {
  return !PATTERNLESS.some(name => clock.startsWith(name));
}
