import { hash } from 'node:crypto';
import { A2AError, clientTaskIdCharsMax, invalidMember, storedTaskId } from '@hopline/a2a';
import { isSameOwner, isTaskId, type Owner, TASK_ID_CHARS_MAX } from '@hopline/events';
import type { A2AServer, OperationContext } from '../a2a-server.ts';

/**
 * Characters (base64url) of the caller's hash in the ids of its tasks: 132 bits, too many for a caller to find a name with the hash of
 * another caller.
 */
const CALLER_HASH_CHARS = 22;

/**
 * The id in the log of the task that a request names. Only requests that the April 2025 form can read may use an id that the client chose.
 * The first that applies: a task of the caller with exactly this id, a task recorded under it, or the id derived from caller and name.
 */
export async function taskIdOf(server: A2AServer, context: OperationContext, id: string): Promise<string> {
  const { dialect, ambiguous, caller } = context;
  if (dialect.name !== 'legacy' && ambiguous !== true) return id;
  const derived = storedTaskId(id, hashOf(caller));
  const recorded = server.recordedTaskIds?.get(id);
  if ((derived === id && recorded === undefined) || (await isTaskOfCaller(server, id, caller))) return id;
  return recorded ?? derived;
}

/** The id in the log of a task that a message names or begins. Throws INVALID_PARAMS for an id that no task can have. */
export async function validTaskIdOf(server: A2AServer, context: OperationContext, id: string): Promise<string> {
  const taskId = isTaskId(id) ? await taskIdOf(server, context, id) : undefined;
  if (taskId !== undefined && isTaskId(taskId)) return taskId;
  const charsMax = clientTaskIdCharsMax(TASK_ID_CHARS_MAX, hashOf(context.caller));
  throw invalidMember('id', `must be 1 to ${charsMax} of A-Z, a-z, 0-9, _ and -`);
}

/** Undefined without authentication, because all callers then count as one. */
function hashOf(caller: Owner): string | undefined {
  if (isSameOwner(caller, undefined)) return undefined;
  const { tenant = null, subject = null } = caller;
  return hash('sha256', JSON.stringify([tenant, subject]), 'base64url').slice(0, CALLER_HASH_CHARS);
}

/** Hides whether the task of another caller exists. */
async function isTaskOfCaller(server: A2AServer, id: string, caller: Owner): Promise<boolean> {
  if (!isTaskId(id)) return false;
  try {
    return (await server.feeds.aggregate(id, caller)) !== undefined;
  } catch (thrown) {
    if (thrown instanceof A2AError && thrown.code === 'TASK_NOT_FOUND') return false;
    throw thrown;
  }
}
