import { type Client, startClient, startCluster } from './bench-cluster.ts';
import { LoadProcess } from './measure/load-process.ts';
import { interleave } from './measure/rounds.ts';
import { spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';
import { RecordingFolder } from './recording-file.ts';
import type { SdkServerMethods } from './sdk-server/main.ts';
import { ANSWER } from './tokens.ts';

/** Name of an agent's artifact without a name of its own. */
const OWN_ARTIFACT = 'response';
const TARGET_TOKENS = 1_000;

type Plan = { rounds: number; lengths: number[] };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 5, lengths: [100, 1_000, 2_000] },
  quick: { rounds: 5, lengths: [100, 1_000] },
  tiny: { rounds: 1, lengths: [50] },
};

type Peer = { url: string; artifact: string; text: string };

/**
 * The official SDK's server in memory, compared with a Hopline sub-agent on the log. Both stream the answer to one message without
 * pauses; the client measures the time from its request to the terminal state.
 */
export const sdkPeer: Question = {
  name: 'sdk',
  async ask(size) {
    const { rounds, lengths } = PLANS[size];
    await using stack = new AsyncDisposableStack();
    const folder = stack.use(new RecordingFolder());
    const server = stack.use(new LoadProcess<SdkServerMethods>(new URL('sdk-server/main.ts', import.meta.url)));
    const sdkUrl = await server.call('listen');
    const sdkClient = stack.use(startClient());
    const agents = lengths.map(tokens => ({
      name: `count-${tokens}`,
      adapter: 'recording',
      path: folder.write(tokens),
      pace: 'burst',
    }));
    const bench = stack.use(await startCluster({ agents, supervisors: 0, ingresses: 0 }));
    const peers: Record<string, () => Promise<number>> = {};
    for (const [index, tokens] of lengths.entries()) {
      const sdk = { url: sdkUrl, artifact: ANSWER, text: String(tokens) };
      const ours = { url: bench.cluster.agents[index]!.url, artifact: OWN_ARTIFACT, text: 'begin' };
      peers[`sdk ${tokens}`] = () => rate(sdkClient, sdk, tokens);
      peers[`ours ${tokens}`] = () => rate(bench.client, ours, tokens);
    }
    await interleave(1, peers);
    return [found(rounds, lengths, await interleave(rounds, peers))];
  },
};

async function rate(client: Client, { url, artifact, text }: Peer, tokens: number): Promise<number> {
  await client.call('ask', { url, text, artifact, count: 1 });
  const [report] = await client.call('answers', { tokens });
  if (!report?.intact) throw new Error(`${url}: ${report?.tokens} of ${tokens} tokens arrived`);
  return (1000 * tokens) / (report.endedAtMs - report.askedAtMs);
}

function found(rounds: number, lengths: number[], rates: Record<string, number[]>): Finding {
  const rows: string[][] = [];
  const targets: Finding['targets'] = [];
  for (const tokens of lengths) {
    const [sdk, ours] = [rates[`sdk ${tokens}`]!, rates[`ours ${tokens}`]!];
    const ratio = spreadOf(ours.map((value, index) => value / sdk[index]!));
    rows.push([`${tokens} tokens: SDK server, in memory`, ...spreadCells(spreadOf(sdk))]);
    rows.push([`${tokens} tokens: sub-agent, on the log`, ...spreadCells(spreadOf(ours))]);
    rows.push([`${tokens} tokens: ours over the SDK's`, ...spreadCells(ratio)]);
    if (tokens === TARGET_TOKENS)
      targets.push({ name: `rate at ${tokens} tokens over that of the SDK server`, wanted: { atLeast: 10 }, found: ratio });
  }
  return {
    title: `one stream, request to terminal state, beside the @a2a-js/sdk server, ${rounds} rounds`,
    table: { columns: ['tokens/s', ...SPREAD_COLUMNS], rows },
    notes: [
      'the SDK server sends one artifact update per token and saves the whole task each time; Hopline stores each token and sends chunks',
    ],
    targets,
  };
}
