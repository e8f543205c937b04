import { defineAgent } from '@hopline/agent';

/** Streams its attempt number, then kills its own process: no attempt completes. */
export default defineAgent({
  name: 'deadly',
  description: 'Ends the process that runs it.',
  async *run({ attempt }) {
    yield `attempt ${attempt} `;
    // Leaves time to append the token to the log.
    await new Promise(resolve => setTimeout(resolve, 300));
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => {});
  },
});
