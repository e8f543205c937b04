import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';

const AUDIT_MS_MAX = 2 * 60 * 1000;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

/** `found`: advisories exist. `unknown`: the registry did not answer. */
export type AuditResult = { outcome: 'none' | 'found' | 'unknown'; output: string };

/**
 * Asks the registry for advisories on production dependencies. pnpm exits with code 1 both for an advisory and for a registry
 * that does not answer, but prints a report only for an advisory.
 */
export function auditDependencies(command: readonly string[]): Promise<AuditResult> {
  const [program = '', ...args] = [...command, 'audit', '--prod', '--audit-level', 'moderate', '--json'];
  const options = { timeout: AUDIT_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX };
  return new Promise(resolve => {
    execFile(program, args, options, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`.trim() || (error?.message ?? '');
      if (!isReport(stdout)) resolve({ outcome: 'unknown', output });
      else resolve({ outcome: error === null ? 'none' : 'found', output });
    });
  });
}

function isReport(text: string): boolean {
  try {
    const report = JSON.parse(text);
    return typeof report === 'object' && report !== null && !('error' in report);
  } catch {
    return false;
  }
}

if (import.meta.main) {
  const { packageManager } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const { outcome, output } = await auditDependencies(['npx', '--yes', packageManager]);
  if (outcome === 'none') console.log('No advisory of moderate severity or above on the dependencies of production.');
  else if (outcome === 'found') console.error(`Advisories on dependencies:\n${output}`);
  // A registry that does not answer must neither block a change nor look like a passed audit. GitHub shows this line as a warning.
  else console.log(`::warning::The registry did not answer; dependencies were NOT audited.\n${output}`);
  process.exitCode = outcome === 'found' ? 1 : 0;
}
