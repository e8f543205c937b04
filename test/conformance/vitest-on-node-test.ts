import assert from 'node:assert/strict';
import { test as nodeTest, suite } from 'node:test';

/**
 * The part of vitest that `@durable-streams/server-conformance-tests` uses, on node:test. vitest itself would add fifty packages for one file. The
 * names of the suites and of the test that run now decide, in `chooseTests`, whether a test runs.
 */

type Choice = (suites: readonly string[], name: string) => boolean;
type Body = () => unknown;

let chosen: Choice = () => true;
let checked: (name: string) => void = () => {};
/** The suites around the code that is registered now. */
const around: string[] = [];

/** Chooses the tests that are registered. Others are not shown. `check` runs after each, and fails it by throwing. */
export function chooseTests(choice: Choice, check: (name: string) => void = () => {}): void {
  chosen = choice;
  checked = check;
}

function describeNow(name: string, body: Body): void {
  // node:test runs the body of a suite later, when `around` has changed.
  const path = [...around, name];
  suite(name, () => {
    const before = around.splice(0, around.length, ...path);
    body();
    around.splice(0, around.length, ...before);
  });
}

function testNow(name: string, body: Body): void {
  if (!chosen(around, name)) return;
  nodeTest(name, async () => {
    await body();
    checked(name);
  });
}

export const describe = Object.assign(describeNow, {
  runIf: (condition: boolean) => (condition ? describeNow : () => {}),
});
export const test = Object.assign(testNow, { concurrent: testNow });

/** A check ends its wait as soon as it passes, so a longer time only helps on a busy machine. */
const WAIT_MS_MIN = 60_000;

export const vi = {
  /** Repeats a check until it passes. */
  async waitFor<T>(
    check: () => T | Promise<T>,
    { timeout = WAIT_MS_MIN, interval = 50 }: { timeout?: number; interval?: number } = {},
  ): Promise<T> {
    for (const end = performance.now() + Math.max(timeout, WAIT_MS_MIN); ; ) {
      try {
        return await check();
      } catch (error) {
        if (performance.now() > end) throw error;
        await new Promise(resolve => setTimeout(resolve, interval));
      }
    }
  },
};

class Contains {
  readonly members: Record<string, unknown>;

  constructor(members: Record<string, unknown>) {
    this.members = members;
  }
}

function isEqual(actual: unknown, expected: unknown): boolean {
  if (expected instanceof Contains) {
    const members = Object.entries(expected.members);
    return members.every(([name, value]) => isEqual((actual as Record<string, unknown> | undefined)?.[name], value));
  }
  try {
    assert.deepEqual(actual, expected);
    return true;
  } catch {
    return false;
  }
}

function includes(actual: unknown, part: unknown): boolean {
  return typeof actual === 'string' ? actual.includes(String(part)) : [...(actual as Iterable<unknown>)].includes(part);
}

type Check = (...expected: never[]) => boolean;

function checksOf(actual: unknown): Record<string, Check> {
  const number = actual as number;
  return {
    toBe: (expected: unknown) => Object.is(actual, expected),
    toBeDefined: () => actual !== undefined,
    toBeUndefined: () => actual === undefined,
    toBeNull: () => actual === null,
    toBeTruthy: () => Boolean(actual),
    toBeGreaterThan: (expected: number) => number > expected,
    toBeGreaterThanOrEqual: (expected: number) => number >= expected,
    toBeLessThan: (expected: number) => number < expected,
    toBeLessThanOrEqual: (expected: number) => number <= expected,
    toContain: (expected: unknown) => includes(actual, expected),
    toContainEqual: (expected: unknown) => (actual as unknown[]).some(one => isEqual(one, expected)),
    toEqual: (expected: unknown) => isEqual(actual, expected),
    toMatch: (expected: RegExp | string) =>
      typeof expected === 'string' ? includes(actual, expected) : expected.test(String(actual)),
  };
}

type Matchers = Record<string, (...expected: unknown[]) => void>;

function matchers(actual: unknown, hint: string | undefined, negated: boolean): Matchers {
  const entries = Object.entries(checksOf(actual)).map(([name, check]) => {
    const matcher = (...expected: unknown[]) => {
      if ((check as (...all: unknown[]) => boolean)(...expected) !== negated) return;
      assert.fail(`${hint ?? ''} ${JSON.stringify(actual)} ${negated ? 'not ' : ''}${name} ${JSON.stringify(expected)}`);
    };
    return [name, matcher] as const;
  });
  return Object.fromEntries(entries);
}

function throws(body: Body): boolean {
  try {
    body();
    return false;
  } catch {
    return true;
  }
}

function expectNow(actual: unknown, hint?: string) {
  const toThrow = (isExpected: boolean) => () => assert.equal(throws(actual as Body), isExpected);
  return {
    ...matchers(actual, hint, false),
    toThrow: toThrow(true),
    not: { ...matchers(actual, hint, true), toThrow: toThrow(false) },
    rejects: { toThrow: () => assert.rejects(actual as Promise<unknown>) },
  };
}

export const expect = Object.assign(expectNow, {
  objectContaining: (members: Record<string, unknown>) => new Contains(members),
});
