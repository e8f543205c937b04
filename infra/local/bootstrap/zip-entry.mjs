import { inflateRawSync } from 'node:zlib';

/** Records of a ZIP file (APPNOTE.TXT of PKWARE, 4.3): bytes before their variable part, and how the last record begins. */
const END_BYTES = 22;
const END_BEGIN = Buffer.from([0x50, 0x4b, 5, 6]);
const ENTRY_BYTES = 46;
const LOCAL_BYTES = 30;
const STORED = 0;
const DEFLATED = 8;

/**
 * The content of one file in a ZIP archive, such as a Python wheel. A fresh machine may have no program that reads one. Archives with more than
 * 4 GiB or 65,535 files are not supported.
 * @param {Buffer} archive @param {string} name @returns {Buffer}
 */
export function zipEntry(archive, name) {
  const end = archive.lastIndexOf(END_BEGIN);
  if (end < 0 || end + END_BYTES > archive.length) throw new Error('it is not a ZIP archive');
  let at = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left -= 1) {
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map(offset => archive.readUInt16LE(at + offset));
    const entryName = archive.toString('utf8', at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes);
    if (entryName === name) return contentOf(archive, at);
    at += ENTRY_BYTES + nameBytes + extraBytes + commentBytes;
  }
  throw new Error(`the archive has no file ${name}`);
}

/** @param {Buffer} archive @param {number} entry its place in the central directory */
function contentOf(archive, entry) {
  const [method, packed, size, local] = [
    archive.readUInt16LE(entry + 10),
    ...[20, 24, 42].map(offset => archive.readUInt32LE(entry + offset)),
  ];
  const start = local + LOCAL_BYTES + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
  const bytes = archive.subarray(start, start + packed);
  if (method === STORED) return bytes;
  if (method !== DEFLATED) throw new Error(`the archive has a file with compression method ${method}`);
  const content = inflateRawSync(bytes, { maxOutputLength: size });
  if (content.length !== size) throw new Error(`the file has ${content.length} bytes, not ${size} as in the archive's list`);
  return content;
}
