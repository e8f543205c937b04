/** A field of a protobuf message: a number for varint and fixed64, bytes for everything with a length. */
type Field = { number: number; value: bigint | Uint8Array };

/** Reads the fields of one message without a schema; enough for OTLP, whose messages have no other wire types. */
export function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const number = key >> 3;
    const wire = key & 7;
    if (wire === 0) yield { number, value: varint() };
    else if (wire === 1) {
      yield { number, value: view.getBigUint64(at, true) };
      at += 8;
    } else if (wire === 2) {
      const length = Number(varint());
      yield { number, value: bytes.subarray(at, at + length) };
      at += length;
    } else if (wire === 5) {
      yield { number, value: BigInt(view.getUint32(at, true)) };
      at += 4;
    } else throw new Error(`unexpected wire type ${wire}`);
  }
}
