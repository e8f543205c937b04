import { isSea } from 'node:sea';
import { UsageError } from './usage-error.ts';

/** Throws UsageError in the single-file binary, which runs its own code only, for a command that starts other programs with Node. */
export function refuseInBinary(command: string): void {
  if (isSea())
    throw new UsageError(`${command} starts programs with Node, which this binary cannot do: use the npm package hopline`);
}
