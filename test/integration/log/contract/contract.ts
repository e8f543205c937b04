import { after, before, describe, test } from 'node:test';
import { factCases } from './facts.ts';
import { followCases, followWithoutTailCheckCases } from './follow.ts';
import { inputCases } from './inputs.ts';
import { keyValueCases } from './key-values.ts';
import { type Case, CONTRACT_TAIL_CHECK_MS, type LogUnderTest } from './log-under-test.ts';
import { presenceCases } from './presence.ts';
import { tenantWorkCases } from './tenant-work.ts';
import { wakeUpCases } from './wake-ups.ts';
import { workCases } from './work.ts';
import { workAttemptCases } from './work-attempts.ts';

export type { LogUnderTest } from './log-under-test.ts';
export {
  CONTRACT_ACK_WAIT_MS,
  CONTRACT_ATTEMPTS_MAX,
  CONTRACT_FOLLOW_BUFFER_RECORDS_MAX,
  CONTRACT_REQUEUES_MAX,
  CONTRACT_ROLE_ITEMS_MAX,
  CONTRACT_SHARDS,
  CONTRACT_TENANT_ITEMS_MAX,
} from './log-under-test.ts';

/** So long that no tail check runs during a test case. */
const NO_TAIL_CHECK_MS = 60_000;

/**
 * Tests every sentence of the interfaces' comments for one implementation. `open` opens the log with the CONTRACT_… values. `onlyRecords`: only
 * the cases of inputs and facts.
 */
export function describeLogContract(
  name: string,
  open: (options: { tailCheckMs: number }) => Promise<LogUnderTest>,
  { onlyRecords = false } = {},
): void {
  describe(`${name} as a log`, () => {
    group('inputs', inputCases, () => open({ tailCheckMs: CONTRACT_TAIL_CHECK_MS }));
    group('facts', factCases, () => open({ tailCheckMs: CONTRACT_TAIL_CHECK_MS }));
    group('follow', followCases, () => open({ tailCheckMs: CONTRACT_TAIL_CHECK_MS }));
    group('follow without tail checks', followWithoutTailCheckCases, () => open({ tailCheckMs: NO_TAIL_CHECK_MS }));
    if (onlyRecords) return;
    group('work', [...workCases, ...workAttemptCases, ...tenantWorkCases], () => open({ tailCheckMs: CONTRACT_TAIL_CHECK_MS }), {
      concurrency: true,
    });
    group('presence', presenceCases, () => open({ tailCheckMs: CONTRACT_TAIL_CHECK_MS }));
    group('wake-ups', wakeUpCases, () => open({ tailCheckMs: CONTRACT_TAIL_CHECK_MS }));
    group('key-values', keyValueCases, () => open({ tailCheckMs: CONTRACT_TAIL_CHECK_MS }));
  });
}

/** Cases of work run concurrently, because they mostly wait, and each has its own role. */
function group(name: string, cases: Case[], open: () => Promise<LogUnderTest>, options: { concurrency?: boolean } = {}): void {
  describe(name, options, () => {
    let underTest: LogUnderTest;
    before(async () => {
      underTest = await open();
    });
    after(() => underTest?.close());
    for (const { name: title, run } of cases) {
      test(title, async () => {
        try {
          await run(underTest);
        } finally {
          underTest.loseAcks(0);
          underTest.loseLive(0);
        }
      });
    }
  });
}
