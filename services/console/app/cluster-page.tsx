import { decodeSse } from '@hopline/a2a';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ClusterFigures } from '../src/cluster-stream.ts';
import { type Connection, type ConsoleInfo, UnreachableError } from './connection.ts';
import { chunksOf } from './follow-task.ts';
import { loadPart } from './load-part.ts';
import { visibleText } from './plain-text.ts';
import { agentPath, linkTo } from './routes.ts';

/** Maximum points of a chart, one every two seconds. */
const POINTS_MAX = 150;
const RECONNECT_MS = 2_000;
/** A stream of figures that is silent for this long is broken. */
const SILENCE_MS_MAX = 15_000;

type Point = { at: number; tokens: number; events: number; requests: number };

/** The cluster, as far as this user and this console may see it. */
export function ClusterPage({ connection, info }: { connection: Connection; info: ConsoleInfo }) {
  const { figures, points, fault } = useFigures(connection);
  const { cluster, agents = [], processes, shards = [], missing = [] } = figures ?? {};
  return (
    <div class="cluster">
      <div class="toolbar">
        <h1>Cluster</h1>
        {figures !== undefined && <span class="muted small">updated {new Date(figures.at).toLocaleTimeString()}</span>}
        {info.links.grafana !== undefined && (
          <a class="button toolbar-end" href={info.links.grafana} target="_blank" rel="noreferrer noopener">
            Grafana
          </a>
        )}
      </div>
      {fault !== '' && (
        <p class="notice notice-error" role="alert">
          {visibleText(fault)}
        </p>
      )}
      {figures === undefined && fault === '' && <p class="muted pad">Reading …</p>}
      {figures !== undefined && <Tiles figures={figures} />}
      {cluster !== undefined && (
        <div class="charts">
          <Chart title="Tokens and events per second" points={points} />
        </div>
      )}
      {figures !== undefined && <AgentTable agents={agents} />}
      {processes !== undefined && <ProcessTable processes={processes} />}
      {shards.length > 0 && <ShardMap shards={shards} />}
      {missing.map(line => (
        <p key={line} class="notice">
          {visibleText(line)}
        </p>
      ))}
    </div>
  );
}

function Tiles({ figures: { cluster, tasks } }: { figures: ClusterFigures }) {
  return (
    <div class="tiles">
      <Tile name="your open tasks" value={String(Object.values(tasks).reduce((sum, count) => sum + count, 0))} />
      {cluster !== undefined && (
        <>
          <Tile name="tokens / s" value={rate(cluster.rates.tokens)} />
          <Tile name="events / s" value={rate(cluster.rates.events)} />
          <Tile name="tasks created / s" value={rate(cluster.rates.tasksCreated)} />
          {cluster.hops[0] !== undefined && (
            <Tile
              name="slowest hop"
              value={cluster.hops[0].hop.replaceAll('_', ' ')}
              detail={`${Math.round(cluster.hops[0].share * 100)} % of the critical paths`}
            />
          )}
          <Tile name="open streams" value={String(cluster.openStreams)} />
          <Tile name="lag" value={`${cluster.lag}`} detail="records not read" isBad={cluster.lag > 1_000} />
          <Tile name="takeovers" value={String(cluster.totals.takeovers)} detail="since the start" />
          <Tile name="dead letters" value={String(cluster.totals.deadLetters)} isBad={cluster.totals.deadLetters > 0} />
        </>
      )}
    </div>
  );
}

function AgentTable({ agents }: { agents: NonNullable<ClusterFigures['agents']> }) {
  return (
    <section class="card table-card">
      <h2>Agents</h2>
      <table>
        <thead>
          <tr>
            <th>agent</th>
            <th>state</th>
            <th class="number">active</th>
            <th class="number">tokens / s</th>
            <th class="number">first token</th>
            <th class="number">turns</th>
            <th class="number">failed</th>
          </tr>
        </thead>
        <tbody>
          {agents.map(({ name, state, fault, failing, activeTasks, tokensPerS, firstTokenS, turnsEnded, turnsFailed }) => (
            <tr key={name}>
              <td>
                <a class="link" href={linkTo(agentPath(name))}>
                  <bdi>{visibleText(name)}</bdi>
                </a>
              </td>
              <td>
                <span class={`dot ${state === 'live' && (fault ?? failing) === undefined ? 'dot-on' : 'dot-off'}`} /> {state}
                {fault !== undefined
                  ? `, does not answer (${fault})`
                  : failing !== undefined && `, its last turns failed (${failing})`}
              </td>
              <td class="number">{activeTasks ?? '–'}</td>
              <td class="number">{tokensPerS === undefined ? '–' : rate(tokensPerS)}</td>
              <td class="number">{firstTokenS === undefined ? '–' : seconds(firstTokenS)}</td>
              <td class="number">{turnsEnded ?? '–'}</td>
              <td class="number">{turnsFailed ?? '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function ProcessTable({ processes }: { processes: NonNullable<ClusterFigures['processes']> }) {
  return (
    <section class="card table-card">
      <h2>Processes</h2>
      <table>
        <thead>
          <tr>
            <th>instance</th>
            <th>state</th>
            <th class="number">CPU</th>
            <th class="number">memory</th>
            <th class="number">loop p99</th>
            <th class="number">restarts</th>
          </tr>
        </thead>
        <tbody>
          {processes.map(({ instance, state, cpu, memoryBytes, loopDelayS, restarts }) => (
            <tr key={instance}>
              <td>{instance}</td>
              <td>
                <span class={`dot ${state === 'ready' ? 'dot-on' : 'dot-off'}`} /> {state}
              </td>
              <td class="number">{cpu === undefined ? '–' : `${Math.round(cpu * 100)} %`}</td>
              <td class="number">{memoryBytes === undefined ? '–' : `${Math.round(memoryBytes / 1_048_576)} MiB`}</td>
              <td class="number">{loopDelayS === undefined ? '–' : seconds(loopDelayS)}</td>
              <td class="number">{restarts}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function ShardMap({ shards }: { shards: NonNullable<ClusterFigures['shards']> }) {
  return (
    <section class="card table-card">
      <h2>Shards</h2>
      <div class="shards">
        {shards.map(({ shard, relay, lag }) => (
          <div
            key={shard}
            class={lag > 1_000 ? 'shard shard-late' : 'shard'}
            title={`shard ${shard}: ${relay}, ${lag} records not read`}
          >
            <strong>{shard}</strong>
            <span class="muted">{relay}</span>
            <span class="number">{lag === 0 ? '' : lag}</span>
          </div>
        ))}
      </div>
    </section>
  );
}

function Tile({ name, value, detail = '', isBad = false }: { name: string; value: string; detail?: string; isBad?: boolean }) {
  return (
    <div class="tile card">
      <span class="muted small">{name}</span>
      <strong class={isBad ? 'bad' : ''}>{value}</strong>
      <span class="muted small">{detail}</span>
    </div>
  );
}

const rate = (perSecond: number) => (perSecond >= 10 ? Math.round(perSecond).toLocaleString('en') : perSecond.toFixed(1));
const seconds = (value: number) => (value < 1 ? `${Math.round(value * 1_000)} ms` : `${value.toFixed(1)} s`);

function useFigures(connection: Connection) {
  const [figures, setFigures] = useState<ClusterFigures>();
  const [points, setPoints] = useState<Point[]>([]);
  const [fault, setFault] = useState('');
  useEffect(() => {
    const stop = new AbortController();
    const follow = async () => {
      const { body } = await connection.open('/cluster.stream', { signal: stop.signal });
      for await (const { data } of decodeSse(chunksOf(body!, SILENCE_MS_MAX))) {
        const next = JSON.parse(data) as ClusterFigures;
        setFault('');
        setFigures(next);
        const rates = next.cluster?.rates;
        if (rates !== undefined) {
          const point = { at: Date.parse(next.at) / 1_000, tokens: rates.tokens, events: rates.events, requests: rates.requests };
          // The clock of the server may have been set back.
          setPoints(before => [...before.filter(({ at }) => at < point.at).slice(-POINTS_MAX), point]);
        }
      }
    };
    const run = async () => {
      while (!stop.signal.aborted) {
        await follow().catch((error: Error) => {
          if (!stop.signal.aborted) setFault(error instanceof UnreachableError ? '' : error.message);
        });
        await new Promise(resolve => setTimeout(resolve, RECONNECT_MS));
      }
    };
    void run();
    return () => stop.abort();
  }, []);
  return { figures, points, fault };
}

/** The chart library is loaded only here. */
function Chart({ title, points }: { title: string; points: readonly Point[] }) {
  const [fault, setFault] = useState('');
  const place = useRef<HTMLDivElement>(null);
  const draw = useRef<((points: readonly Point[]) => void) | undefined>(undefined);
  // Figures may arrive while the library loads.
  const latest = useRef(points);
  latest.current = points;
  useEffect(() => {
    let close = () => {};
    let isClosed = false;
    loadPart(import('./rate-chart.ts')).then(
      ({ openChart }) => {
        if (isClosed) return;
        const chart = openChart(place.current!, latest.current);
        close = chart.close;
        draw.current = chart.draw;
      },
      (error: Error) => isClosed || setFault(error.message),
    );
    return () => {
      isClosed = true;
      close();
    };
  }, []);
  useEffect(() => draw.current?.(points), [points]);
  return (
    <figure class="card chart">
      <figcaption>
        {title} <span class="legend legend-tokens">tokens</span> <span class="legend legend-events">events</span>
      </figcaption>
      {fault !== '' && <p class="muted small">{fault}</p>}
      <div ref={place} class="chart-place" />
    </figure>
  );
}
