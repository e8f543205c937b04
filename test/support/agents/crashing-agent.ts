import { defineAgent } from '@hopline/agent';

/** Streams its attempt number, then kills its sub-agent, so that no attempt completes. Needs HOPLINE_CODE_USER=same. */
export default defineAgent({
  name: 'deadly',
  description: 'Kills the process that called it.',
  async *run({ attempt }) {
    yield `attempt ${attempt} `;
    // Leaves time to append the token to the log.
    await new Promise(resolve => setTimeout(resolve, 300));
    process.kill(process.ppid, 'SIGKILL');
    await new Promise(() => {});
  },
});
