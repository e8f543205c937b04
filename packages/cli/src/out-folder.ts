import { ArtifactFolder } from '@hopline/terminal';
import { codeOfFault } from './input-file.ts';
import { UsageError } from './usage-error.ts';

/** The folder of `--out`, which is created. Throws UsageError when that is impossible. */
export function outFolder(path: string): ArtifactFolder {
  try {
    return new ArtifactFolder(path);
  } catch (thrown) {
    throw new UsageError(`--out ${path}: the folder cannot be created (${codeOfFault(thrown)})`);
  }
}
