import { readFileSync } from 'node:fs';

/** The two architectures of images, by their names in OCI, Debian and Go. */
export const ARCHITECTURES = ['amd64', 'arm64'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** Properties of a program or library that an image needs. `needed`: names of the libraries it is linked with. */
type Elf = { architecture: Architecture; interpreter?: string; needed: string[] };

const MAGIC = Buffer.from('\x7fELF\x02\x01', 'latin1');
const MACHINES: Record<number, Architecture> = { 62: 'amd64', 183: 'arm64' };
/** Types of segments and of entries of the dynamic section. */
const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_NEEDED = 1;
const DT_STRTAB = 5;
const DYNAMIC_ENTRY_BYTES = 16;

type Segment = { type: number; offset: number; address: number; bytes: number };

/**
 * Reads a 64-bit little-endian ELF file; undefined for any other file. `ldd` would run the program, so it cannot read programs for another
 * architecture.
 */
export function readElf(path: string): Elf | undefined {
  const file = readFileSync(path);
  if (!file.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  const machine = file.readUInt16LE(18);
  const architecture = MACHINES[machine];
  if (architecture === undefined)
    throw new Error(`${path} is a program for ELF machine ${machine}; images are for amd64 and arm64`);
  const segments = readSegments(file);
  const interpreter = segments.find(({ type }) => type === PT_INTERP);
  return {
    architecture,
    ...(interpreter && { interpreter: textAt(file, interpreter.offset) }),
    needed: readNeeded(file, segments),
  };
}

function readSegments(file: Buffer): Segment[] {
  const start = Number(file.readBigUInt64LE(32));
  const entryBytes = file.readUInt16LE(54);
  return Array.from({ length: file.readUInt16LE(56) }, (_, index) => {
    const at = start + index * entryBytes;
    const number = (member: number) => Number(file.readBigUInt64LE(at + member));
    return { type: file.readUInt32LE(at), offset: number(8), address: number(16), bytes: number(32) };
  });
}

function readNeeded(file: Buffer, segments: readonly Segment[]): string[] {
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  if (dynamic === undefined) return [];
  const names: number[] = [];
  let tableAddress = 0;
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.bytes; at += DYNAMIC_ENTRY_BYTES) {
    const [tag, value] = [file.readBigUInt64LE(at), Number(file.readBigUInt64LE(at + 8))];
    if (tag === BigInt(DT_NEEDED)) names.push(value);
    if (tag === BigInt(DT_STRTAB)) tableAddress = value;
  }
  const holder = segments.find(
    ({ type, address, bytes }) => type === PT_LOAD && address <= tableAddress && tableAddress < address + bytes,
  );
  if (holder === undefined) return [];
  const table = tableAddress - holder.address + holder.offset;
  return names.map(name => textAt(file, table + name));
}

function textAt(file: Buffer, offset: number): string {
  return file.toString('latin1', offset, file.indexOf(0, offset));
}
