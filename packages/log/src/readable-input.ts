import { isDeeperThan } from '@hopline/a2a';
import { type AgentInput, INPUT_DEPTH_MAX, isMalformedInput, type TextInput } from '@hopline/events';
import { InputUnreadable } from './errors.ts';

/**
 * UTF-8 bytes of an input as JSON. Throws InputUnreadable for an input that a relay could not read, because it would make the whole task
 * fail. The JSON is checked, since it may differ from the object: a Buffer, for example, becomes an object with a list of numbers.
 */
export function readableBytes(input: Exclude<AgentInput, TextInput>): number {
  const json = JSON.stringify(input);
  if (isDeeperThan(input, INPUT_DEPTH_MAX))
    throw new InputUnreadable(`an input of kind "${input.kind}" nests deeper than ${INPUT_DEPTH_MAX} levels of JSON`);
  if (isMalformedInput(JSON.parse(json)))
    throw new InputUnreadable(`an input of kind "${input.kind}" has a member of a wrong type`);
  return Buffer.byteLength(json);
}
