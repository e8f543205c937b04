import assert from 'node:assert/strict';
import { createLangGraphAgent } from '@hopline/agent-langgraph';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ScriptedModel } from '../support/agents/graphs/scripted-model.ts';
import { turnOf } from '../support/agents/turn.ts';
import { spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Question, Size } from './question.ts';

/** `runsMax`: most runs of one length in a round. Every length has about the same total of tokens, so that start-up does not dominate short runs. */
type Plan = { rounds: number; lengths: number[]; runsMax: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 5, lengths: [1_000, 10_000, 100_000], runsMax: 20 },
  quick: { rounds: 3, lengths: [1_000, 100_000], runsMax: 20 },
  tiny: { rounds: 1, lengths: [20, 200], runsMax: 1 },
};

type Round = { bareUs: number; agentUs: number };

/** CPU microseconds that an adapter costs per token, compared with reading the same stream without it. */
export const adapters: Question = {
  name: 'adapters',
  async ask(size) {
    const { rounds, lengths, runsMax } = PLANS[size];
    const measured = new Map(lengths.map(length => [length, [] as Round[]]));
    await oneRound(lengths[0]!, runsMax);
    for (let round = 0; round < rounds; round++)
      for (const [length, list] of measured) list.push(await oneRound(length, runsMax));
    const rows = [...measured].flatMap(([length, list]) => [
      [`langgraph, ${length} tokens: graph read bare`, ...spreadCells(spreadOf(list.map(({ bareUs }) => bareUs)))],
      [`langgraph, ${length} tokens: with the adapter`, ...spreadCells(spreadOf(list.map(({ agentUs }) => agentUs)))],
      [
        `langgraph, ${length} tokens: the adapter's own`,
        ...spreadCells(spreadOf(list.map(({ bareUs, agentUs }) => agentUs - bareUs))),
      ],
    ]);
    const [short, long] = [lengths[0]!, lengths.at(-1)!].map(
      length => spreadOf(measured.get(length)!.map(({ agentUs }) => agentUs)).median,
    );
    return [
      {
        title: `adapters: microseconds of CPU a token, ${rounds} rounds`,
        table: { columns: ['µs a token', ...SPREAD_COLUMNS], rows },
        notes: [
          'a scripted model in a real graph, all four stream modes; each figure except "own" includes the graph and its model',
        ],
        targets: [
          {
            name: `langgraph: a token of ${lengths.at(-1)} over one of ${lengths[0]}`,
            // Two medians of the same figure differ by up to a tenth here.
            wanted: { atMost: 1.1 },
            found: long! / short!,
          },
        ],
      },
    ];
  },
};

function graphOf(length: number) {
  const tokens = Array.from({ length }, (_, index) => `${index} `);
  const model = new ScriptedModel(() => ({ tokens }));
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('n', async ({ messages }, config) => ({ messages: [await model.invoke(messages, config)] }))
    .addEdge(START, 'n')
    .addEdge('n', END)
    .compile();
  return { graph, text: tokens.join('') };
}

async function oneRound(length: number, runsMax: number): Promise<Round> {
  const { graph, text } = graphOf(length);
  const runs = Math.max(1, Math.min(runsMax, Math.floor(20_000 / length)));
  const agent = await createLangGraphAgent({ graph });
  const bareUs = await cpuUsOf(runs * length, async () => {
    for (let run = 0; run < runs; run++) assert.equal(await readBare(graph), text);
  });
  const agentUs = await cpuUsOf(runs * length, async () => {
    for (let run = 0; run < runs; run++) {
      let received = '';
      for await (const event of agent.run(turnOf('hi'))) if (event.type === 'text') received += event.text;
      assert.equal(received, text);
    }
  });
  return { bareUs, agentUs };
}

async function readBare(graph: ReturnType<typeof graphOf>['graph']): Promise<string> {
  const streamMode = ['values', 'messages', 'custom', 'updates'] as const;
  let received = '';
  const input = { messages: [{ role: 'user', content: 'hi', id: 'm' }] };
  for await (const event of await graph.stream(input, { streamMode: [...streamMode], subgraphs: true })) {
    const [, mode, chunk] = event as unknown as [string[], string, [{ content: string }]];
    if (mode === 'messages') received += chunk[0].content;
  }
  return received;
}

async function cpuUsOf(tokens: number, run: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / tokens;
}
