import { isObject, type JsonObject, metadata, object, present, text } from '../json-value.ts';
import type { Metadata, Part } from '../types.ts';

/**
 * 0.3 cannot express the media type and file name of a text or data part, nor data that is not an object. They are stored in the part's
 * metadata, so that nothing is lost. The flag of wrapped data is the one that the 0.3 layer of @a2a-js/sdk 1.x writes and
 * reads.
 */
const DATA_WRAPPED = 'data_part_compat';
const MEDIA_TYPE = 'hopline.mediaType';
const FILENAME = 'hopline.filename';

export function encodePart(part: Part): JsonObject {
  if (part.raw !== undefined || part.url !== undefined) return encodeFile(part);
  const extra = present({ [MEDIA_TYPE]: part.mediaType, [FILENAME]: part.filename });
  if (part.text !== undefined) return { kind: 'text', text: part.text, ...merged(part.metadata, extra) };
  if (isObject(part.data)) return { kind: 'data', data: part.data, ...merged(part.metadata, extra) };
  return { kind: 'data', data: { value: part.data ?? null }, ...merged(part.metadata, { ...extra, [DATA_WRAPPED]: true }) };
}

function encodeFile(part: Part): JsonObject {
  const content = part.raw === undefined ? { uri: part.url } : { bytes: part.raw };
  const file = { ...content, ...present({ name: part.filename, mimeType: part.mediaType }) };
  return { kind: 'file', file, ...merged(part.metadata, {}) };
}

function merged(own: Metadata | undefined, extra: Metadata): { metadata?: Metadata } {
  const all = { ...own, ...extra };
  return Object.keys(all).length > 0 ? { metadata: all } : {};
}

/** Decodes by `kind`, `type` (older), or the only content member. A value that is not a part of this dialect is kept as data. */
export function decodePart(value: unknown): Part {
  if (!isObject(value)) return { data: value };
  // The form of nearly every token.
  if (value.kind === 'text' && typeof value.text === 'string' && value.metadata === undefined) return { text: value.text };
  const kind = text(value.kind) ?? text(value.type);
  const file = object(value.file);
  if (file !== undefined && kind !== 'text' && kind !== 'data') return decodeFile(value, file);
  const { [MEDIA_TYPE]: mediaType, [FILENAME]: filename, [DATA_WRAPPED]: wrapped, ...rest } = metadata(value.metadata) ?? {};
  const extra = present({ metadata: metadata(rest), mediaType: text(mediaType), filename: text(filename) });
  if (kind === 'text' || (kind !== 'data' && typeof value.text === 'string')) {
    return { text: typeof value.text === 'string' ? value.text : '', ...extra };
  }
  if (!('data' in value)) return { data: value };
  const data = wrapped === true && isObject(value.data) && 'value' in value.data ? value.data.value : value.data;
  return { data, ...extra };
}

function decodeFile(part: JsonObject, file: JsonObject): Part {
  const { bytes, uri, name, mimeType } = file;
  const content = typeof bytes === 'string' ? { raw: bytes } : typeof uri === 'string' ? { url: uri } : undefined;
  if (content === undefined) return { data: part };
  return { ...content, ...present({ metadata: metadata(part.metadata), filename: text(name), mediaType: text(mimeType) }) };
}
