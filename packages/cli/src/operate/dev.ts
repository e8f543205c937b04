import { command } from '../command/command.ts';
import { flag, text } from '../command/options.ts';
import { UsageError } from '../command/usage-error.ts';

/** The bootstrap of the package `hopline` runs this command by itself, before it loads this code. */
export const dev = command({
  name: 'dev',
  summary: 'starts a cluster on this machine, and asks it a first question; in a checkout: npm start',
  details: 'only the package `hopline` has this command; its --help lists the environment, too',
  asksNoServer: true,
  hasNoJson: true,
  options: {
    port: text('N', 'port of the public endpoint (HOPLINE_PORT, default 8000; 0 chooses a free one)'),
    agents: text(
      'FILE',
      'agents file; one sub-agent process per entry (HOPLINE_AGENTS, default: the agents of the demo)',
      'files',
    ),
    origin: { ...text('URL', 'a page of your own may use the cluster from a browser; may be repeated'), multiple: true },
    noDemo: flag('sends no question'),
  },
  async run(_given, { own }) {
    throw new UsageError(
      own.start === undefined
        ? 'this installation has no launcher: install the package hopline'
        : `this installation starts a cluster with: ${own.start}`,
    );
  },
});
