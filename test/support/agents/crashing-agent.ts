import { defineAgent } from '@hopline/agent';

/** Says which attempt it is, and takes its process with it: work that nobody survives. */
export default defineAgent({
  name: 'deadly',
  description: 'Ends the process that runs it.',
  async *run({ attempt }) {
    yield `attempt ${attempt} `;
    // Until the word has left for the log.
    await new Promise(resolve => setTimeout(resolve, 300));
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => {});
  },
});
