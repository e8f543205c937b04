import { FILE_BYTES_MAX, type ViewFile } from '@hopline/task-view';
import type { ArtifactFolder } from './artifact-folder.ts';

/** Longest name in a line. */
const NAME_CHARS_MAX = 200;

const PROBLEMS = {
  beginning: 'it begins before this part of the stream',
  excess: `more than ${FILE_BYTES_MAX} bytes are not kept`,
} as const;

/** The line about a complete file: its name, size and links. With a folder the file is saved, and the line ends with its path. */
export function fileReport(file: ViewFile, folder: ArtifactFolder | undefined): string {
  const { id, name = id, bytes, parts } = file;
  const shown = name.replaceAll(/\s+/g, ' ').slice(0, NAME_CHARS_MAX);
  const urls = parts.flatMap(({ url }) => (url === undefined ? [] : [url]));
  const size = `${bytes} ${bytes === 1 ? 'byte' : 'bytes'}`;
  const line = [shown, ...(urls.length > 0 && bytes === 0 ? [] : [size]), ...urls].join(', ');
  return folder === undefined ? line : `${line}${savedIn(folder, name, file)}`;
}

function savedIn(folder: ArtifactFolder, name: string, { parts, missing }: ViewFile): string {
  const saved = missing === undefined ? folder.save(name, parts) : { problem: PROBLEMS[missing] };
  if ('paths' in saved) return saved.paths.length === 0 ? '' : ` -> ${saved.paths.join(', ')}`;
  folder.fail();
  return `: not saved, ${saved.problem}`;
}
