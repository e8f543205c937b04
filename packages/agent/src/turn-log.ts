import type { Logger } from '@hopline/telemetry';
import { AgentMisuse } from './misuse.ts';

/** What may stand in a log line beside the words of the source: numbers and truths, which hold no text of anybody. */
export type Loggable = number | boolean;

/**
 * The log of a turn. Lines are written as template literals: turn.log.info`looked up ${rows} rows`. The words come from the source code and the values are numbers, so the text of a
 * message, a token or a credential cannot get in by accident; a string among the values shows as `[text]`.
 */
export type TurnLog = {
  readonly [L in 'debug' | 'info' | 'warn' | 'error']: (words: TemplateStringsArray, ...values: Loggable[]) => void;
};

export function turnLog(logger: Logger, agent: string): TurnLog {
  const method =
    (level: keyof TurnLog) =>
    (words: TemplateStringsArray, ...values: unknown[]): void =>
      logger[level]({ agent }, lineOf(level, words, values));
  return { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') };
}

export const NO_LOG: TurnLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function lineOf(level: string, words: unknown, values: readonly unknown[]): string {
  // Only a template literal makes such an array: a plain string here may be anybody's text.
  if (!Array.isArray(words) || !('raw' in words) || !Object.isFrozen(words)) {
    throw new AgentMisuse(`turn.log.${level} is written as a template literal: turn.log.${level}\`looked up \${count} rows\``);
  }
  return words.reduce((line: string, word: string, index) => line + shown(values[index - 1]) + word);
}

function shown(value: unknown): string {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '[text]';
}
