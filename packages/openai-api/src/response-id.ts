/** The turn of a task that a response is. The first turn is 1. */
export type ResponseRef = { taskId: string; turn: number };

const RESPONSE_ID = /^resp_([A-Za-z0-9_-]+)(?:\.([1-9]\d{0,5}))?$/;

/** `resp_` with the task id; a later turn, which answers a question of the agent, has its number as well. */
export function responseIdOf({ taskId, turn }: ResponseRef): string {
  return turn === 1 ? `resp_${taskId}` : `resp_${taskId}.${turn}`;
}

export function responseRefOf(id: unknown): ResponseRef | 'invalid' {
  const [, taskId, turn = '1'] = (typeof id === 'string' && RESPONSE_ID.exec(id)) || [];
  return taskId === undefined ? 'invalid' : { taskId, turn: Number(turn) };
}

/** Seconds since 1970 at which a task was created, from its id (UUID version 7); 0 for an id that a client chose. */
export function createdAtOf(taskId: string): number {
  const [, high, low] = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-/.exec(taskId) ?? [];
  return high === undefined ? 0 : Math.floor(Number.parseInt(high + low, 16) / 1_000);
}
