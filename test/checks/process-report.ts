import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Linux counts CPU time in this unit for programs, whatever the clock of its kernel is. */
const TICK_MS = 10;
/** utime, stime, cutime and cstime of proc(5), after the name of the program. process.resourceUsage() leaves out the children. */
const TIMES = [11, 15] as const;
const STAT = '/proc/self/stat';

// Test processes load this module first. The variable is removed, because the programs that a test starts inherit its environment.
const path = process.env.TEST_REPORT_FILE;
delete process.env.TEST_REPORT_FILE;
if (path !== undefined) {
  writeFileSync(path, `${process.pid}`);
  if (existsSync(STAT)) process.once('exit', () => appendFileSync(path, ` ${cpuMs()}`));
}

/** CPU milliseconds of this process and of the processes that it has waited for. */
function cpuMs(): number {
  const stat = readFileSync(STAT, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(') ') + 2).split(' ');
  return fields.slice(...TIMES).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}
