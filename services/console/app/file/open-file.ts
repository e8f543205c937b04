import { Connection } from '../connection.ts';
import { taskPath } from '../routes.ts';
import { fileApi } from './file-api.ts';
import { readTasks } from './read-tasks.ts';

/** A file that the page shows. `path`: where its reader begins. */
export type OpenedFile = { name: string; connection: Connection; path: string };

/** Throws UnreadableFile. */
export async function openFile(name: string, bytes: AsyncIterable<Uint8Array>): Promise<OpenedFile> {
  const tasks = await readTasks(bytes);
  const path = tasks.length === 1 ? taskPath(tasks[0]!.header.taskId) : '/';
  return { name, connection: new Connection(fileApi(tasks)), path };
}
