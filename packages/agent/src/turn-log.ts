import type { Logger } from '@hopline/telemetry';
import { AgentMisuse } from './misuse.ts';

/** Values of a log line: numbers and booleans, which cannot leak content. */
export type Loggable = number | boolean;

/**
 * The log of a turn. Lines are template literals: turn.log.info`looked up ${rows} rows`. The words come from the source code and the values
 * are numbers, so the text of a message, a token or a credential cannot be logged by accident; a string is logged as `[text]`.
 */
export type TurnLog = {
  readonly [L in 'debug' | 'info' | 'warn' | 'error']: (words: TemplateStringsArray, ...values: Loggable[]) => void;
};

/** The log of a turn of `agent`. It writes to `logger`. */
export function turnLog(logger: Logger, agent: string): TurnLog {
  const method =
    (level: keyof TurnLog) =>
    (words: TemplateStringsArray, ...values: unknown[]): void =>
      logger[level]({ agent }, lineOf(level, words, values));
  return { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') };
}

export const NO_LOG: TurnLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function lineOf(level: string, words: unknown, values: readonly unknown[]): string {
  // Accepts only the array of a template literal, because a plain string could hold content.
  if (!Array.isArray(words) || !('raw' in words) || !Object.isFrozen(words)) {
    throw new AgentMisuse(
      `turn.log.${level} must be called with a template literal: turn.log.${level}\`looked up \${count} rows\``,
    );
  }
  return words.reduce((line: string, word: string, index) => line + shown(values[index - 1]) + word);
}

function shown(value: unknown): string {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '[text]';
}
