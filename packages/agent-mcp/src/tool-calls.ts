import { isObject, type Part, parseObject } from '@hopline/a2a';
import { MESSAGE_CALLS_MAX, NESTED_MAX } from './limits.ts';

export type WrittenCall = { tool: string; args: Record<string, unknown> };

type FoundCalls =
  | { calls: WrittenCall[]; rejection?: undefined }
  /** One invalid call rejects all calls of the message. The reason does not quote the message. */
  | { calls?: undefined; rejection: string };

/** A tool name in the form recommended by the MCP specification, right before the arguments. */
const TOOL_BEFORE = /([A-Za-z0-9_.\-/]{1,128})\s{0,8}$/;
/** Largest distance from the start of the name to `{`. */
const LOOK_BACK_CHARS = 136;

export const UNKNOWN_TOOL = 'the agent has no tool of that name';

/**
 * Finds the tool calls of a message, in order: a data part `{"tool":…,"arguments":{…}}`, or `tool {…}` in the text, a word right before a
 * JSON object. Adjacent text parts are read as one text.
 */
export function findCalls(parts: readonly Part[], isTool: (name: string) => boolean): FoundCalls {
  const calls: WrittenCall[] = [];
  for (const item of joinTexts(parts)) {
    const found = typeof item === 'string' ? callsInText(item, isTool) : callInData(item, isTool);
    if (found.rejection !== undefined) return found;
    calls.push(...found.calls);
  }
  return calls.length > MESSAGE_CALLS_MAX
    ? { rejection: `the message names more than ${MESSAGE_CALLS_MAX} tool calls` }
    : { calls };
}

function joinTexts(parts: readonly Part[]): (string | { data: unknown })[] {
  const items: (string | { data: unknown })[] = [];
  for (const part of parts) {
    const last = items.at(-1);
    if (part.text !== undefined && typeof last === 'string') items[items.length - 1] = last + part.text;
    else if (part.text !== undefined) items.push(part.text);
    else if (part.data !== undefined) items.push({ data: part.data });
  }
  return items;
}

function callInData({ data }: { data: unknown }, isTool: (name: string) => boolean): FoundCalls {
  if (!isObject(data) || typeof data.tool !== 'string') return { calls: [] };
  if (!isTool(data.tool)) return { rejection: UNKNOWN_TOOL };
  const args = data.arguments ?? {};
  return isObject(args)
    ? { calls: [{ tool: data.tool, args }] }
    : { rejection: `the arguments of ${data.tool} are not an object` };
}

function callsInText(text: string, isTool: (name: string) => boolean): FoundCalls {
  const calls: WrittenCall[] = [];
  /** Ends of the brace pairs around `at` that are not JSON. */
  let enclosing: number[] = [];
  for (let at = text.indexOf('{'); at >= 0; at = text.indexOf('{', at)) {
    const start = at;
    at += 1;
    enclosing = enclosing.filter(end => end > start);
    if (enclosing.length >= NESTED_MAX) continue;
    const tool = TOOL_BEFORE.exec(text.slice(Math.max(0, start - LOOK_BACK_CHARS), start))?.[1];
    const end = endOfObject(text, start);
    const args = end === undefined ? undefined : parseObject(text.slice(start, end));
    if (tool !== undefined && args !== undefined) {
      // A word before an object is treated as a call, so that a misspelled tool is reported.
      if (!isTool(tool)) return { rejection: UNKNOWN_TOOL };
      calls.push({ tool, args });
    } else if (tool !== undefined && isTool(tool)) {
      return { rejection: `the arguments of ${tool} are not a JSON object` };
    }
    if (end !== undefined && args !== undefined) at = end;
    else enclosing.push(end ?? text.length);
  }
  return { calls };
}

/** Returns the index after the brace that closes the one at `start`, ignoring braces in JSON strings. */
function endOfObject(text: string, start: number): number | undefined {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (quoted) {
      if (char === '\\') at += 1;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '{') depth += 1;
    else if (char === '}') {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return undefined;
}
