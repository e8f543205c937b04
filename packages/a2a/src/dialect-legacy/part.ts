import { decodePart as decodePart03, encodePart as encodePart03 } from '../dialect-0.3/part.ts';
import { isObject, type JsonObject } from '../json-value.ts';
import type { Part } from '../types.ts';

/** The parts of 0.3 with `type` instead of `kind`. Values that 0.3 cannot express are stored in the part's metadata here too. */

export function encodePart(part: Part): JsonObject {
  const { kind, ...rest } = encodePart03(part);
  return { type: kind, ...rest };
}

/** Accepts a media type as the discriminator too, and keeps it as the part's media type. */
export function decodePart(value: unknown): Part {
  const part = decodePart03(value);
  const type = isObject(value) ? value.type : undefined;
  if (typeof type !== 'string' || !type.includes('/') || part.mediaType !== undefined) return part;
  return { ...part, mediaType: type };
}
