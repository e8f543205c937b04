import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { textOf } from '@hopline/a2a';
import type { Agent, AgentEvent, Turn } from '@hopline/agent';
import { createRecordingAgent } from '@hopline/agent/recording';

const RECORDING = fileURLToPath(new URL('guide.jsonl', import.meta.url));
const OWN_QUESTION = /\b(?:explain|hopline)\b/i;

const INTRODUCTION = `Hello, I am the guide of this demo. I have no language model, so a question must name what it wants:

- How did this text reach you? Ask me: \`explain hopline\`
- What is in a folder of this repository? The agent "files" lists it: \`list_directory {"path":"packages"}\`
- What is in a file? It reads it: \`read_text_file {"path":"package.json"}\`
- Both of us at once: \`list_directory {"path":"docs"} and explain how hopline streams this answer\`

To add agents, write one (docs/guides/first-agent.md) or list yours in an agents file (npm start -- --agents FILE).
`;

/** Pause between two words of the introduction. */
const WORD_MS = 12;

const recording = await createRecordingAgent({ path: RECORDING, pace: 'recorded' });

/** The demo's default agent. It explains Hopline with a recorded answer, and answers any other message with the questions it can answer. */
export default {
  description: 'Explains how Hopline works (a recorded answer) and what else you can ask.',
  skills: async () => [
    {
      id: 'explain',
      name: 'Explain Hopline',
      description: 'Explains what Hopline does with a question: the log, the relay, the chunks, resuming.',
      tags: ['hopline', 'explain'],
      examples: ['explain hopline'],
    },
  ],
  run: turn => (OWN_QUESTION.test(textOf(turn.message.parts)) ? recording.run(turn) : introduce(turn)),
  close: () => recording.close(),
} satisfies Agent;

async function* introduce({ signal }: Turn): AsyncGenerator<AgentEvent> {
  for (const text of INTRODUCTION.split(/(?<=\s)/)) {
    yield { type: 'text', text };
    await delay(WORD_MS, undefined, { signal });
  }
}
