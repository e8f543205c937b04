import { isObject } from '@hopline/a2a';
import { kindOf } from './misuse.ts';

const CONTENTS = ['text', 'raw', 'url', 'data'] as const;
const WORDS = ['text', 'raw', 'url', 'filename', 'mediaType'] as const;

/** Why a value is not a list of parts of A2A 1.0; undefined if it is one. Names members and types, never a value. */
export function faultOfParts(parts: unknown): string | undefined {
  if (!Array.isArray(parts)) return `parts is ${kindOf(parts)}, not an array`;
  // Accesses elements by index, because `map` and `find` skip holes.
  for (let index = 0; index < parts.length; index += 1) {
    const fault = faultOfPart(parts[index]);
    if (fault !== undefined) return `parts[${index}]${fault}`;
  }
  return undefined;
}

function faultOfPart(part: unknown): string | undefined {
  if (!isObject(part)) return ` is ${kindOf(part)}; write { text }, { raw }, { url } or { data }`;
  const contents = CONTENTS.filter(name => part[name] !== undefined);
  if (contents.length === 0 && part.file !== undefined)
    return ' has the form of A2A 0.3; write { raw, filename, mediaType } or { url, filename, mediaType }';
  if (contents.length !== 1)
    return ` has ${contents.length === 0 ? 'no content' : contents.join(' and ')}: give one of text, raw, url and data`;
  if (part.raw instanceof Uint8Array) return ".raw is bytes; write bytes.toString('base64')";
  const wrong = WORDS.find(name => part[name] !== undefined && typeof part[name] !== 'string');
  if (wrong !== undefined) return `.${wrong} is ${kindOf(part[wrong])}, not a string`;
  return part.metadata === undefined || isObject(part.metadata)
    ? undefined
    : `.metadata is ${kindOf(part.metadata)}, not an object`;
}
