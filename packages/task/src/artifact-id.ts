import { hash } from 'node:crypto';

/**
 * The artifact id of a lane: the same for every attempt and relay, and unique over all tasks, because front ends key elements by
 * it (S0-47). A hash instead of a random id keeps the decider pure. The first 128 bits of SHA-256 in the form of a UUID (version
 * 8, RFC 9562).
 */
export function artifactIdOf(taskId: string, lane: string): string {
  const hex = hash('sha256', `${taskId}\n${lane}`);
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
