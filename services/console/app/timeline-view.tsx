import type { ProducerActivity, TaskReport } from '@hopline/task-audit';
import { stepName, stepText } from '@hopline/task-audit/traced-steps';
import {
  chunksOf,
  costLabel,
  costText,
  duration,
  endOf,
  GAP_CAUSES,
  percent,
  TAKEOVER_CAUSES,
  type WaterfallRow,
  waterfallOf,
} from '@hopline/task-audit/waterfall';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Axis } from './axis.ts';
import {
  type BarDetails,
  failureOf,
  firstTokenOf,
  hopDetails,
  producerDetails,
  rateOf,
  rateText,
  rowFailureOf,
} from './bar-details.ts';
import { drawnAgain } from './drawn-again.ts';
import { memo, memoBy } from './memo.ts';
import { visibleText } from './plain-text.ts';
import type { Kill } from './processes.ts';
import type { IdleSpan } from './recording.ts';

type Props = {
  report: TaskReport | undefined;
  fault: string;
  axis: Axis;
  /** Times without events, which the axis shortens. */
  idle: readonly IdleSpan[];
  /** The playhead, in milliseconds of the axis of playing. */
  playMs: number;
  onSeek: (playMs: number) => void;
  /** Processes that were killed from this page. */
  kills?: readonly Kill[] | undefined;
  /** Explains the event at a time, for the details of a bar. */
  explain: (atMs: number) => ComponentChildren;
  /** Renders the tasks below this one. `known`: number of tasks that its agents have begun on their own servers. */
  below: (known: number) => ComponentChildren;
};

/** Maximum number of rendered rows; more would be unreadable. */
const HOP_ROWS_MAX = 400;
const TICKS = 5;
const NO_KILLS: readonly Kill[] = [];

/** Timeline of a task: lanes of producers and relays, the waterfall of hops, and what each hop cost, on one axis. */
export function TimelineView({ report, fault, axis, idle, playMs, onSeek, kills = NO_KILLS, explain, below }: Props) {
  const [details, setDetails] = useState<BarDetails>();
  if (report === undefined)
    return <p class="muted pad">{fault === '' ? 'Reading the log of the task …' : `No timeline: ${visibleText(fault)}.`}</p>;
  const seek = (event: MouseEvent) => {
    if ((event.target as Element).closest('button') !== null) return;
    const place = (event.currentTarget as HTMLElement).querySelector('.axis')!.getBoundingClientRect();
    const fraction = (event.clientX - place.left) / place.width;
    if (fraction >= 0 && fraction <= 1) onSeek(axis.playMsAt(fraction));
  };
  const head = axis.ofPlayMs(playMs);
  const remoteTasks = report.producers.filter(({ remoteTaskId }) => remoteTaskId !== undefined).length;
  return (
    <div class="timeline">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/noStaticElementInteractions: the scrubber does the same with keys. */}
      <div class="timeline-plot" onClick={seek}>
        <Plot report={report} kills={kills} axis={axis} axisKey={axis.key} idle={idle} open={details?.key} onOpen={setDetails} />
        <div class="playhead-axis" aria-hidden="true">
          {head >= 0 && head <= 1 && <span class="playhead" style={{ left: `${head * 100}%` }} />}
        </div>
      </div>
      {details !== undefined && <Details details={details} explain={explain} onClose={() => setDetails(undefined)} />}
      <Agents report={report} />
      <Models report={report} />
      {remoteTasks > 0 && below(remoteTasks)}
      <Costs report={report} />
    </div>
  );
}

type DetailsProps = { details: BarDetails; explain: Props['explain']; onClose: () => void };

/** The sentences about one bar, and the explanation of the event that it leads to. */
function Details({ details: { key, title, sentences, atMs }, explain, onClose }: DetailsProps) {
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus(), [key]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onClose();
  };
  return (
    <section class="bar-details card" aria-label={`About ${title}`} tabIndex={-1} ref={panel} onKeyDown={onKeyDown}>
      <header>
        <h2>
          <bdi>{title}</bdi>
        </h2>
        <button type="button" class="button button-quiet" onClick={onClose} title="Escape">
          Close
        </button>
      </header>
      <ul class="sentences">
        {sentences.map(sentence => (
          <li key={sentence}>
            <bdi>{sentence}</bdi>
          </li>
        ))}
      </ul>
      {explain(atMs)}
    </section>
  );
}

/** The first token and the rate of each agent. */
const Agents = memo(({ report: { producers } }: { report: TaskReport }) => (
  <section class="totals">
    <h2 class="lane-group">Agents</h2>
    <table>
      <thead>
        <tr>
          <th>agent</th>
          <th class="number">first token</th>
          <th class="number">tokens</th>
          <th class="number">rate</th>
          <th>outcome</th>
        </tr>
      </thead>
      <tbody>
        {producers.map(producer => {
          const { agent, turn, id, attempt, tokens, state } = producer;
          const [firstToken, rate, failure] = [firstTokenOf(producer), rateOf(producer), failureOf(producer, producers)];
          return (
            <tr key={`${turn}-${id}-${attempt}`}>
              <td>
                <bdi>{visibleText(agent)}</bdi> <span class="muted">{againText(producer)}</span>
              </td>
              <td class="number">{firstToken === undefined ? '–' : duration(firstToken)}</td>
              <td class="number">{tokens.toLocaleString('en')}</td>
              <td class="number">{rate === undefined ? '–' : rateText(rate)}</td>
              <td class={failure === undefined ? '' : 'bad'}>
                <bdi>{visibleText(failure ?? state ?? '–')}</bdi>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  </section>
));

/** Which turn and attempt this is, unless it is the first one. */
function againText({ turn, attempt, cause }: ProducerActivity): string {
  return [
    ...(turn > 1 ? [`turn ${turn}`] : []),
    ...(attempt > 1 ? [`attempt ${attempt}${cause === undefined ? '' : ` (${cause})`}`] : []),
  ].join(', ');
}

/** The style of a span on the axis; undefined if it is outside of the shown part. */
function placeOf(axis: Axis, fromMs: number, toMs: number): { left: string; width: string } | undefined {
  const [from, to] = [axis.ofMs(fromMs), axis.ofMs(Math.max(fromMs, toMs))];
  if (to < 0 || from > 1) return undefined;
  const left = Math.max(0, from);
  return { left: `${left * 100}%`, width: `${(Math.min(1, to) - left) * 100}%` };
}

type SpanProps = { axis: Axis; fromMs: number; toMs: number; kind: string; title?: string };

function Span({ axis, fromMs, toMs, kind, title = '' }: SpanProps) {
  const place = placeOf(axis, fromMs, toMs);
  return place === undefined ? null : <span class={`span ${kind}`} title={title} style={place} />;
}

type BarProps = SpanProps & { details: BarDetails; isOpen: boolean; onOpen: (details: BarDetails) => void };

/** A span that opens its details. */
function BarButton({ axis, fromMs, toMs, kind, details, isOpen, onOpen }: BarProps) {
  const place = placeOf(axis, fromMs, toMs);
  if (place === undefined) return null;
  return (
    <button
      type="button"
      class={`span bar-button ${kind}`}
      aria-label={`${details.title}: details`}
      aria-expanded={isOpen}
      title={details.sentences.join(' ')}
      style={place}
      onClick={() => onOpen(details)}
    />
  );
}

/** Everything on the axis except the playhead, which moves with each frame. */
type PlotProps = {
  report: TaskReport;
  kills: readonly Kill[];
  axis: Axis;
  /** Changes with what the axis shows. */
  axisKey: string;
  idle: readonly IdleSpan[];
  /** Key of the bar whose details are shown. */
  open: string | undefined;
  onOpen: (details: BarDetails) => void;
};

const Plot = memoBy(['report', 'kills', 'axisKey', 'open'], ({ report, kills, axis, idle, open, onOpen }: PlotProps) => {
  const rows = useMemo(() => waterfallOf(report), [report]);
  const endMs = endOf(report);
  return (
    <>
      <div class="lane lane-axis">
        <span class="lane-name" />
        <span class="axis">
          {Array.from({ length: TICKS + 1 }, (_, tick) => (
            <span key={tick} class="tick" style={{ left: `${(tick / TICKS) * 100}%` }}>
              {duration(Math.max(0, axis.msAt(tick / TICKS)))}
            </span>
          ))}
        </span>
      </div>
      <div class="idle-axis" aria-hidden="true">
        {idle.map(({ fromPlayMs, toPlayMs, ms }) => {
          const [from, to] = [axis.ofPlayMs(fromPlayMs), axis.ofPlayMs(toPlayMs)];
          if (to < 0 || from > 1) return null;
          const left = Math.max(0, from);
          const place = { left: `${left * 100}%`, width: `${(Math.min(1, to) - left) * 100}%` };
          return <span key={fromPlayMs} class="idle" title={`${duration(ms)} without events`} style={place} />;
        })}
      </div>
      <h2 class="lane-group">Lanes</h2>
      {report.relays.map(({ relay = 'unknown', fromMs, records, takeover }, index) => {
        const toMs = report.relays[index + 1]?.fromMs ?? endMs;
        const cause = takeover && (TAKEOVER_CAUSES[takeover.cause] ?? takeover.cause);
        return (
          <Lane
            key={`${relay}-${fromMs}`}
            name="relay"
            detail={shortRelay(relay)}
            title={`${relay}: ${records} records${cause ? `; took over: ${cause}` : ''}`}
          >
            <Span axis={axis} kind="span-relay" fromMs={fromMs} toMs={toMs} />
            {takeover !== undefined && (
              <Span axis={axis} kind="takeover" fromMs={takeover.atMs} toMs={takeover.atMs} title={`takeover: ${cause}`} />
            )}
          </Lane>
        );
      })}
      {report.producers.map(producer => (
        <ProducerLane
          key={`${producer.turn}-${producer.id}-${producer.attempt}`}
          producer={producer}
          report={report}
          axis={axis}
          open={open}
          onOpen={onOpen}
        />
      ))}
      {kills.length > 0 && (
        <Lane name="killed" detail="from this page" title="Processes that were killed from this page">
          {kills.map(({ instance, pid, atMs, againMs = Math.max(atMs, endMs) }) => (
            <Span
              key={pid}
              axis={axis}
              kind="span-kill"
              title={`${instance} was killed, and ran again after ${duration(againMs - atMs)}`}
              fromMs={Math.min(atMs, endMs)}
              toMs={Math.min(againMs, endMs)}
            />
          ))}
        </Lane>
      )}
      {report.gaps.length > 0 && (
        <Lane name="gaps" detail="" title="times without events">
          {report.gaps.map(({ fromMs, toMs, cause }) => (
            <Span
              key={fromMs}
              axis={axis}
              kind="span-gap"
              title={`${duration(toMs - fromMs)}: ${GAP_CAUSES[cause] ?? cause}`}
              fromMs={fromMs}
              toMs={toMs}
            />
          ))}
        </Lane>
      )}
      <h2 class="lane-group">Hops</h2>
      {rows.slice(0, HOP_ROWS_MAX).map((row, index) => (
        <HopRow key={index} row={row} report={report} axis={axis} id={`hop-${index}`} open={open} onOpen={onOpen} />
      ))}
      {rows.length > HOP_ROWS_MAX && (
        <p class="muted small pad">and {rows.length - HOP_ROWS_MAX} more hops, which are not drawn</p>
      )}
    </>
  );
});

function shortRelay(relay: string): string {
  // Two runs of one instance differ in their suffix.
  return visibleText(relay).replace(/(-[0-9a-f]{4})[0-9a-f]{4}$/, '$1');
}

function Lane({
  name,
  detail,
  title,
  isFailed = false,
  children,
}: {
  name: string;
  detail: string;
  title: string;
  isFailed?: boolean;
  children: preact.ComponentChildren;
}) {
  return (
    <div class="lane" title={title}>
      <span class="lane-name">
        <bdi class={isFailed ? 'bad' : ''}>{name}</bdi> <span class="muted">{detail}</span>
      </span>
      <span class="axis">{children}</span>
    </div>
  );
}

type LaneProps = {
  producer: ProducerActivity;
  report: TaskReport;
  axis: Axis;
  open: string | undefined;
  onOpen: (details: BarDetails) => void;
};

function ProducerLane({ producer, report, axis, open, onOpen }: LaneProps) {
  const {
    id,
    agent,
    turn,
    attempt,
    queuedMs,
    takenMs,
    firstMs,
    lastMs,
    endMs: producerEnd,
    tools,
    tokens,
    steps = [],
  } = producer;
  const from = takenMs ?? firstMs;
  const to = producerEnd ?? lastMs;
  const again = againText(producer);
  const failure = failureOf(producer, report.producers);
  const details = producerDetails(producer, report.producers, `${turn}-${id}-${attempt}`);
  const summary = `${visibleText(agent)}, ${visibleText(id)}: ${tokens} tokens, ${duration(to - from)}${again && `, ${again}`}`;
  return (
    <Lane
      name={visibleText(agent)}
      detail={again}
      title={failure === undefined ? summary : `${summary}. ${visibleText(failure)}`}
      isFailed={failure !== undefined}
    >
      {queuedMs !== undefined && from > queuedMs && (
        <Span axis={axis} kind="span-queue" title={`queued ${duration(from - queuedMs)}`} fromMs={queuedMs} toMs={from} />
      )}
      <BarButton
        axis={axis}
        kind={failure === undefined ? 'span-work' : 'span-work span-failed'}
        fromMs={from}
        toMs={to}
        details={details}
        isOpen={open === details.key}
        onOpen={onOpen}
      />
      <ChunkTicks report={report} producer={producer} axis={axis} />
      {tools.map(tool => (
        <Span
          key={`${tool.name}-${tool.fromMs}`}
          axis={axis}
          kind="span-tool"
          title={`tool ${visibleText(tool.name)}, ${duration(tool.ms)}`}
          fromMs={tool.fromMs}
          toMs={tool.fromMs + tool.ms}
        />
      ))}
      {steps.map(step => (
        <Span
          key={`step-${step.name}-${step.n}`}
          axis={axis}
          kind={step.outcome === 'reused' ? 'span-step span-reused' : 'span-step'}
          title={`step ${visibleText(stepName(step))}: ${stepText(step)}`}
          fromMs={step.fromMs}
          toMs={step.toMs}
        />
      ))}
    </Lane>
  );
}

/** The chunks of a producer at the times when they were stored, higher for more text. */
function ChunkTicks({ report, producer, axis }: Pick<LaneProps, 'report' | 'producer' | 'axis'>) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current!;
    return drawnAgain(element, () => drawTicks(element, report, producer, axis));
  }, [report, axis.key]);
  return <canvas class="ticks" ref={canvas} aria-hidden="true" />;
}

function drawTicks(element: HTMLCanvasElement, report: TaskReport, producer: ProducerActivity, axis: Axis): void {
  const [width, height, scale] = [element.clientWidth, element.clientHeight, devicePixelRatio];
  element.width = width * scale;
  element.height = height * scale;
  const context = element.getContext('2d')!;
  context.scale(scale, scale);
  context.fillStyle = getComputedStyle(element).color;
  const sums = new Float64Array(Math.max(1, Math.ceil(width)));
  for (const { characters, atMs, storedMs = atMs } of chunksOf(report, producer)) {
    const place = axis.ofMs(storedMs);
    if (place < 0 || place > 1) continue;
    const x = Math.min(sums.length - 1, Math.floor(place * width));
    sums[x] = sums[x]! + characters;
  }
  const most = sums.reduce((max, sum) => Math.max(max, sum), 1);
  for (const [x, sum] of sums.entries()) {
    if (sum === 0) continue;
    const tick = Math.max(3, (Math.log1p(sum) / Math.log1p(most)) * height);
    context.fillRect(x, (height - tick) / 2, 1.5, tick);
  }
}

type HopProps = Pick<LaneProps, 'report' | 'axis' | 'open' | 'onOpen'> & { row: WaterfallRow; id: string };

function HopRow({ row, report, axis, id, open, onOpen }: HopProps) {
  const { kind, label, fromMs, toMs, note } = row;
  const [from, to] = [axis.ofMs(fromMs), axis.ofMs(toMs)];
  // The note is after the bar, or inside a long bar that ends late.
  const isLate = to > 0.7;
  const isInside = isLate && from < 0.3;
  const isShown = to >= 0 && from <= 1;
  const shown = visibleText(label.replaceAll('_', ' '));
  const details = hopDetails(row, report, id);
  const failure = rowFailureOf(row, report);
  return (
    <div class="lane lane-hop" title={`${shown}: ${visibleText(note)}`}>
      <span class="lane-name">
        <bdi>{shown}</bdi>
      </span>
      <span class="axis">
        <BarButton
          axis={axis}
          kind={`hop hop-${kind} ${failure === undefined ? '' : 'hop-failed'}`}
          fromMs={fromMs}
          toMs={toMs}
          details={details}
          isOpen={open === id}
          onOpen={onOpen}
        />
        {isShown && (
          <span
            class={`hop-note ${isInside ? 'hop-note-inside' : isLate ? 'hop-note-left' : ''}`}
            style={{ left: `${Math.max(0, Math.min(1, isLate ? from : to)) * 100}%` }}
          >
            {visibleText(failure === undefined ? note : `${note}. ${failure}`)}
          </span>
        )}
      </span>
    </div>
  );
}

/** Tokens and cost of models by agent. An ingress of an earlier version does not report them. */
const Models = memo(({ report: { models = [] } }: { report: TaskReport }) => {
  if (models.length === 0) return null;
  const shown = (count: number | undefined) => (count === undefined ? '–' : count.toLocaleString('en'));
  return (
    <section class="totals">
      <h2 class="lane-group">Models</h2>
      <table>
        <thead>
          <tr>
            <th>agent</th>
            <th>model</th>
            <th class="number">requests</th>
            <th class="number">input</th>
            <th class="number">cached</th>
            <th class="number">output</th>
            <th class="number">reasoning</th>
            <th class="number">cost</th>
          </tr>
        </thead>
        <tbody>
          {models.map(({ agent, model, requests, inputTokens, cachedTokens, outputTokens, reasoningTokens, cost }) => (
            <tr key={`${agent} ${model}`}>
              <td>
                <bdi>{visibleText(agent)}</bdi>
              </td>
              <td>
                <bdi>{visibleText(model)}</bdi>
              </td>
              <td class="number">{shown(requests)}</td>
              <td class="number">{shown(inputTokens)}</td>
              <td class="number">{shown(cachedTokens)}</td>
              <td class="number">{shown(outputTokens)}</td>
              <td class="number">{shown(reasoningTokens)}</td>
              <td class="number">{cost === undefined ? '–' : costText(cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
});

const Costs = memo(({ report: { costs, chunkHops, notRecorded } }: { report: TaskReport }) => {
  const hold = chunkHops.find(({ hop }) => hop === 'hold');
  return (
    <section class="totals">
      <h2 class="lane-group">Cost of each hop</h2>
      <table>
        <thead>
          <tr>
            <th>hop</th>
            <th class="number">critical path</th>
            <th class="number">share</th>
            <th class="wide">
              <span class="visually-hidden">share as a bar</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {costs.map(cost => (
            <tr key={costLabel(cost)}>
              <td>{visibleText(costLabel(cost).replaceAll('_', ' '))}</td>
              <td class="number">{duration(cost.ms)}</td>
              <td class="number">{percent(cost.share)}</td>
              <td class="wide">
                <span class="sum-bar" style={{ width: `${cost.share * 100}%` }} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="muted small pad">
        Nothing else delayed the end of a turn in the time of these hops.{' '}
        {hold !== undefined && `Chunks were held for ${duration(hold.p50)} in the median, at most ${duration(hold.max)}. `}
        Not in the log: {notRecorded.join(', ')}.
      </p>
    </section>
  );
});
