/** The DER (X.690) types that a certificate needs. */

function element(tag: number, ...content: Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const digits = body.length.toString(16);
  const bytes = Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex');
  const length = body.length < 0x80 ? Buffer.of(body.length) : Buffer.concat([Buffer.of(0x80 | bytes.length), bytes]);
  return Buffer.concat([Buffer.of(tag), length, body]);
}

export const sequence = (...content: Uint8Array[]): Buffer => element(0x30, ...content);
export const set = (...content: Uint8Array[]): Buffer => element(0x31, ...content);
/** A positive integer from its bytes. */
export const integer = (bytes: Uint8Array): Buffer => element(0x02, bytes[0]! >= 0x80 ? Buffer.of(0) : Buffer.of(), bytes);
export const boolean = (value: boolean): Buffer => element(0x01, Buffer.of(value ? 0xff : 0));
export const bits = (bytes: Uint8Array, unused = 0): Buffer => element(0x03, Buffer.of(unused), bytes);
export const octets = (bytes: Uint8Array): Buffer => element(0x04, bytes);
export const utf8 = (text: string): Buffer => element(0x0c, Buffer.from(text));
/** Valid for the years 1950 to 2049. */
export const utcTime = (date: Date): Buffer =>
  element(
    0x17,
    Buffer.from(
      `${date
        .toISOString()
        .replaceAll(/[-:T]|\.\d+/g, '')
        .slice(2)}`,
    ),
  );
/** `[n]`, explicit tag. */
export const tagged = (n: number, ...content: Uint8Array[]): Buffer => element(0xa0 | n, ...content);
/** `[n]`, implicit tag. */
export const implicit = (n: number, bytes: Uint8Array): Buffer => element(0x80 | n, bytes);

export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap(part => {
    const groups = [part & 0x7f];
    for (let left = part >>> 7; left > 0; left >>>= 7) groups.unshift(0x80 | (left & 0x7f));
    return groups;
  });
  return element(0x06, Buffer.from(bytes));
}
