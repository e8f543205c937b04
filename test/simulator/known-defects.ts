/**
 * Defects that are in the services today, with seeds that show them. A seed of this list must fail: when its defect is mended, the test
 * fails until the seed is removed here, so the list is never longer than the truth.
 */
export type KnownDefect = { reason: string; seeds: readonly number[] };

export const KNOWN_DEFECTS: readonly KnownDefect[] = [
  {
    reason:
      'a call is queued again by a supervisor that takes over: the duplicate window of the work stream was all that prevented it',
    seeds: [74, 80],
  },
  {
    reason: 'a lease write is stored and its answer lost: no process works on the shard afterwards',
    seeds: [56, 84],
  },
  {
    reason: 'the first record after a load is not compared with the ordinal before it: text with a hole completes',
    seeds: [9, 32, 61, 75, 83, 93, 96, 107, 117],
  },
  {
    reason: 'an agent that stops deletes the registry entry that its siblings share',
    seeds: [21, 58],
  },
  {
    reason: 'inputs that are no input stop a relay or its shard, an unknown input of a client cancels its task',
    seeds: [3, 13, 19, 81, 104, 108],
  },
];
