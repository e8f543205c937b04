import assert from 'node:assert/strict';
import { test } from 'node:test';
import { auditDependencies } from './audit.ts';

/** A fake package manager that prints a text and exits with a code. */
const printing = (text: string, code: number) => [
  process.execPath,
  '-e',
  `process.stdout.write(${JSON.stringify(text)}); process.exit(${code})`,
  '--',
];

test('an audit passes, finds advisories, or reports that the registry did not answer', async () => {
  const report = '{"advisories":{},"metadata":{"vulnerabilities":{"moderate":0}}}';
  const outcomeOf = async (command: string[]) => (await auditDependencies(command)).outcome;
  assert.equal(await outcomeOf(printing(report, 0)), 'none');
  assert.equal(await outcomeOf(printing(report, 1)), 'found');
  assert.equal(await outcomeOf(printing('Error: ERR_PNPM_AUDIT_BAD_RESPONSE responded with 405', 1)), 'unknown');
  assert.equal(await outcomeOf(printing('{"error":{"code":"ERR_PNPM_AUDIT_BAD_RESPONSE"}}', 1)), 'unknown');
  assert.equal(await outcomeOf(printing('', 0)), 'unknown');
  assert.equal(await outcomeOf(['/nowhere/pnpm']), 'unknown');
});
