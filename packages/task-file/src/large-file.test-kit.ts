import { parentPort } from 'node:worker_threads';
import { exampleStream, HEADER, OUTCOME } from './example-task.test-kit.ts';
import { readTaskFile } from './read-task-file.ts';
import { writeTask } from './write-task.ts';

/** Runs in a worker whose heap is smaller than the file: writes a long task and reads it at once. */
const RECORDS = 4_000;
const TEXT = 'word '.repeat(8_200);

function* texts(): Generator<string> {
  for (let n = 0; n < RECORDS; n += 1) yield TEXT;
}

let bytes = 0;
async function* file(): AsyncGenerator<Uint8Array> {
  for await (const line of writeTask(HEADER, exampleStream(texts()), { outcome: OUTCOME })) {
    bytes += line.length;
    yield Buffer.from(line);
  }
}

let entries = 0;
for await (const _entry of readTaskFile(file())) entries += 1;
parentPort?.postMessage({ entries, bytes });
