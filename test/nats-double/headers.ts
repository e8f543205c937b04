/**
 * The header block of a message in the form of the protocol: `NATS/1.0[ status]\r\n`, lines `Name: value\r\n`, an empty line. Each
 * character is one byte (latin1). The empty string is a message without headers.
 */
export type HeaderBlock = string;

const VERSION = 'NATS/1.0';
const END = '\r\n';

/** The value of a header, whose name is case-sensitive; empty if it is missing. */
export function headerOf(block: HeaderBlock, name: string): string {
  const start = block.indexOf(`${END}${name}:`);
  if (start < 0) return '';
  const from = start + END.length + name.length + 1;
  return block.slice(from, block.indexOf(END, from)).trim();
}

export function withHeaders(block: HeaderBlock, added: Record<string, string | number>): HeaderBlock {
  const lines = Object.entries(added).map(([name, value]) => `${name}: ${value}${END}`);
  return `${block === '' ? `${VERSION}${END}` : block.slice(0, -END.length)}${lines.join('')}${END}`;
}

/** A message of the server about a request, such as `404 No Messages`. */
export function statusBlock(status: string, added: Record<string, string | number> = {}): HeaderBlock {
  return withHeaders(`${VERSION} ${status}${END}${END}`, added);
}

/** The headers that a stream stores with a message: not the status, and no block that had only a status. */
export function withoutStatus(block: HeaderBlock): HeaderBlock {
  if (block === '' || block.startsWith(VERSION + END)) return block;
  const rest = block.slice(block.indexOf(END));
  return rest === `${END}${END}` ? '' : VERSION + rest;
}
