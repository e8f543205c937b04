import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { zipEntry } from './zip-entry.mjs';

/** An archive of files, `stored` or deflated; `size`: the number of bytes that its list states. */
function zip(files) {
  const [locals, entries] = [[], []];
  let at = 0;
  for (const { name, text, isStored = false, method = isStored ? 0 : 8, size = text.length } of files) {
    const data = isStored ? Buffer.from(text) : deflateRawSync(text);
    const [local, entry] = [Buffer.alloc(30), Buffer.alloc(46)];
    local.writeUInt16LE(name.length, 26);
    entry.writeUInt16LE(method, 10);
    entry.writeUInt32LE(data.length, 20);
    entry.writeUInt32LE(size, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(at, 42);
    locals.push(local, Buffer.from(name), data);
    entries.push(entry, Buffer.from(name));
    at += 30 + name.length + data.length;
  }
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, ...entries, end]);
}

test('a file is read from a ZIP archive, deflated or stored', () => {
  const archive = zip([
    { name: 'a/METADATA', text: 'Name: a' },
    { name: 'a/nats-server', text: 'x'.repeat(100_000) },
    { name: 'stored', text: 'as it is', isStored: true },
  ]);
  assert.equal(zipEntry(archive, 'a/nats-server').toString(), 'x'.repeat(100_000));
  assert.equal(zipEntry(archive, 'stored').toString(), 'as it is');
});

test('a missing file, another compression, a wrong size and other content are each reported', () => {
  const archive = zip([{ name: 'a', text: 'text' }]);
  assert.throws(() => zipEntry(archive, 'b'), /^Error: the archive has no file b$/);
  assert.throws(() => zipEntry(zip([{ name: 'a', text: 'text', method: 93 }]), 'a'), /compression method 93/);
  assert.throws(() => zipEntry(zip([{ name: 'a', text: 'text', size: 5 }]), 'a'), /the file has 4 bytes, not 5/);
  assert.throws(
    () => zipEntry(zip([{ name: 'a', text: 'text', size: 3 }]), 'a'),
    /larger than 3 bytes|maxOutputLength|ERR_BUFFER_TOO_LARGE/,
  );
  for (const bytes of [Buffer.alloc(0), Buffer.from('<html>')]) assert.throws(() => zipEntry(bytes, 'a'), /not a ZIP archive/);
});
