import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The agents that run when no agents file is named. */
export const DEMO_AGENTS = fileURLToPath(new URL('../demo/agents.json', import.meta.url));

/** The first question; it makes the demo's agents call a real tool and stream a real text. */
export function demoQuestion(): string {
  const { text } = JSON.parse(readFileSync(new URL('../demo/question.json', import.meta.url), 'utf8'));
  return text;
}
