import { ArtifactFolder } from '@hopline/terminal';
import { codeOfFault } from '../command/input-file.ts';
import { UsageError } from '../command/usage-error.ts';

/** The folder of `--out`, which is created; undefined without the option. Throws UsageError when it cannot be created. */
export function outFolder(path: string | undefined): ArtifactFolder | undefined {
  if (path === undefined) return undefined;
  try {
    return new ArtifactFolder(path);
  } catch (thrown) {
    throw new UsageError(`--out ${path}: the folder cannot be created (${codeOfFault(thrown)})`);
  }
}
