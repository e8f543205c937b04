import type { ProducerActivity, TaskReport } from '@hopline/task-audit';
import {
  chunksOf,
  costLabel,
  duration,
  endOf,
  GAP_CAUSES,
  percent,
  TAKEOVER_CAUSES,
  type WaterfallRow,
  waterfallOf,
} from '@hopline/task-audit/waterfall';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { drawnAgain } from './drawn-again.ts';
import { memo } from './memo.ts';
import { visibleText } from './plain-text.ts';
import type { Kill } from './processes.ts';

type Props = {
  report: TaskReport | undefined;
  fault: string;
  /** The playhead, in milliseconds after the task's first input. */
  playheadMs: number;
  onSeek: (ms: number) => void;
  /** Processes that were killed from this page. */
  kills?: readonly Kill[] | undefined;
};

/** Maximum number of rendered rows; more would be unreadable. */
const HOP_ROWS_MAX = 400;
const TICKS = 5;
const NO_KILLS: readonly Kill[] = [];

/** Timeline of a task: lanes of producers and relays, the waterfall of hops, and what each hop cost, on one axis. */
export function TimelineView({ report, fault, playheadMs, onSeek, kills = NO_KILLS }: Props) {
  const endMs = useMemo(() => (report === undefined ? 1 : endOf(report)), [report]);
  if (report === undefined)
    return <p class="muted pad">{fault === '' ? 'Reading the log of the task …' : `No timeline: ${visibleText(fault)}.`}</p>;
  const seek = (event: MouseEvent) => {
    const axis = (event.currentTarget as HTMLElement).querySelector('.axis')!.getBoundingClientRect();
    const fraction = (event.clientX - axis.left) / axis.width;
    if (fraction >= 0 && fraction <= 1) onSeek(fraction * endMs);
  };
  return (
    <div class="timeline">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/noStaticElementInteractions: the scrubber does the same with keys. */}
      <div class="timeline-plot" onClick={seek}>
        <Plot report={report} kills={kills} />
        <div class="playhead-axis" aria-hidden="true">
          <span class="playhead" style={{ left: percentOf(playheadMs, endMs) }} />
        </div>
      </div>
      <Costs report={report} />
    </div>
  );
}

/** Everything on the axis except the playhead, which moves with each frame. */
const Plot = memo(({ report, kills }: { report: TaskReport; kills: readonly Kill[] }) => {
  const rows = useMemo(() => waterfallOf(report), [report]);
  const endMs = endOf(report);
  const leftOf = (ms: number) => percentOf(ms, endMs);
  return (
    <>
      <div class="lane lane-axis">
        <span class="lane-name" />
        <span class="axis">
          {Array.from({ length: TICKS + 1 }, (_, tick) => (
            <span key={tick} class="tick" style={{ left: `${(tick / TICKS) * 100}%` }}>
              {duration((endMs * tick) / TICKS)}
            </span>
          ))}
        </span>
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
            <span class="span span-relay" style={{ left: leftOf(fromMs), width: leftOf(toMs - fromMs) }} />
            {takeover !== undefined && (
              <span class="takeover" title={`takeover: ${cause}`} style={{ left: leftOf(takeover.atMs) }} />
            )}
          </Lane>
        );
      })}
      {report.producers.map(producer => (
        <ProducerLane
          key={`${producer.turn}-${producer.id}-${producer.attempt}`}
          producer={producer}
          report={report}
          endMs={endMs}
          leftOf={leftOf}
        />
      ))}
      {kills.length > 0 && (
        <Lane name="killed" detail="from this page" title="Processes that were killed from this page">
          {kills.map(({ instance, pid, atMs, againMs = Math.max(atMs, endMs) }) => (
            <span
              key={pid}
              class="span span-kill"
              title={`${instance} was killed, and ran again after ${duration(againMs - atMs)}`}
              style={{ left: leftOf(atMs), width: leftOf(Math.min(againMs, endMs) - Math.min(atMs, endMs)) }}
            />
          ))}
        </Lane>
      )}
      {report.gaps.length > 0 && (
        <Lane name="gaps" detail="" title="times without events">
          {report.gaps.map(({ fromMs, toMs, cause }) => (
            <span
              key={fromMs}
              class="span span-gap"
              title={`${duration(toMs - fromMs)}: ${GAP_CAUSES[cause] ?? cause}`}
              style={{ left: leftOf(fromMs), width: leftOf(toMs - fromMs) }}
            />
          ))}
        </Lane>
      )}
      <h2 class="lane-group">Hops</h2>
      {rows.slice(0, HOP_ROWS_MAX).map((row, index) => (
        <HopRow key={index} row={row} endMs={endMs} leftOf={leftOf} />
      ))}
      {rows.length > HOP_ROWS_MAX && (
        <p class="muted small pad">and {rows.length - HOP_ROWS_MAX} more hops, which are not drawn</p>
      )}
    </>
  );
});

const percentOf = (ms: number, endMs: number) => `${Math.max(0, Math.min(100, (ms / endMs) * 100))}%`;

function shortRelay(relay: string): string {
  // Two runs of one instance differ in their suffix.
  return visibleText(relay).replace(/(-[0-9a-f]{4})[0-9a-f]{4}$/, '$1');
}

function Lane({
  name,
  detail,
  title,
  children,
}: {
  name: string;
  detail: string;
  title: string;
  children: preact.ComponentChildren;
}) {
  return (
    <div class="lane" title={title}>
      <span class="lane-name">
        <bdi>{name}</bdi> <span class="muted">{detail}</span>
      </span>
      <span class="axis">{children}</span>
    </div>
  );
}

type LaneProps = { producer: ProducerActivity; report: TaskReport; endMs: number; leftOf: (ms: number) => string };

function ProducerLane({ producer, report, endMs, leftOf }: LaneProps) {
  const { id, agent, turn, attempt, queuedMs, takenMs, firstMs, lastMs, endMs: producerEnd, tools, tokens, cause } = producer;
  const from = takenMs ?? firstMs;
  const to = producerEnd ?? lastMs;
  const again = [
    ...(turn > 1 ? [`turn ${turn}`] : []),
    ...(attempt > 1 ? [`attempt ${attempt}${cause === undefined ? '' : ` (${cause})`}`] : []),
  ].join(', ');
  return (
    <Lane
      name={visibleText(agent)}
      detail={again}
      title={`${visibleText(agent)}, ${visibleText(id)}: ${tokens} tokens, ${duration(to - from)}${again && `, ${again}`}`}
    >
      {queuedMs !== undefined && from > queuedMs && (
        <span
          class="span span-queue"
          title={`queued ${duration(from - queuedMs)}`}
          style={{ left: leftOf(queuedMs), width: leftOf(from - queuedMs) }}
        />
      )}
      <span class="span span-work" style={{ left: leftOf(from), width: leftOf(to - from) }} />
      <ChunkTicks report={report} producer={producer} endMs={endMs} />
      {tools.map(tool => (
        <span
          key={`${tool.name}-${tool.fromMs}`}
          class="span span-tool"
          title={`tool ${visibleText(tool.name)}, ${duration(tool.ms)}`}
          style={{ left: leftOf(tool.fromMs), width: leftOf(tool.ms) }}
        />
      ))}
    </Lane>
  );
}

/** The chunks of a producer at the times when they were stored, higher for more text. */
function ChunkTicks({ report, producer, endMs }: Pick<LaneProps, 'report' | 'producer' | 'endMs'>) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current!;
    return drawnAgain(element, () => drawTicks(element, report, producer, endMs));
  }, [report]);
  return <canvas class="ticks" ref={canvas} aria-hidden="true" />;
}

function drawTicks(element: HTMLCanvasElement, report: TaskReport, producer: ProducerActivity, endMs: number): void {
  const [width, height, scale] = [element.clientWidth, element.clientHeight, devicePixelRatio];
  element.width = width * scale;
  element.height = height * scale;
  const context = element.getContext('2d')!;
  context.scale(scale, scale);
  context.fillStyle = getComputedStyle(element).color;
  const sums = new Float64Array(Math.max(1, Math.ceil(width)));
  for (const { characters, atMs, storedMs = atMs } of chunksOf(report, producer)) {
    const x = Math.min(sums.length - 1, Math.floor((storedMs / endMs) * width));
    sums[x] = sums[x]! + characters;
  }
  const most = sums.reduce((max, sum) => Math.max(max, sum), 1);
  for (const [x, sum] of sums.entries()) {
    if (sum === 0) continue;
    const tick = Math.max(3, (Math.log1p(sum) / Math.log1p(most)) * height);
    context.fillRect(x, (height - tick) / 2, 1.5, tick);
  }
}

type HopProps = { row: WaterfallRow; endMs: number; leftOf: (ms: number) => string };

function HopRow({ row: { kind, label, fromMs, toMs, note }, endMs, leftOf }: HopProps) {
  // The note is behind the bar, or inside a long bar that ends late.
  const isLate = toMs > endMs * 0.7;
  const isInside = isLate && fromMs < endMs * 0.3;
  const shown = visibleText(label.replaceAll('_', ' '));
  return (
    <div class="lane lane-hop" title={`${shown}: ${visibleText(note)}`}>
      <span class="lane-name">
        <bdi>{shown}</bdi>
      </span>
      <span class="axis">
        <span class={`span hop hop-${kind}`} style={{ left: leftOf(fromMs), width: leftOf(toMs - fromMs) }} />
        <span
          class={`hop-note ${isInside ? 'hop-note-inside' : isLate ? 'hop-note-left' : ''}`}
          style={{ left: leftOf(isLate ? fromMs : toMs) }}
        >
          {visibleText(note)}
        </span>
      </span>
    </div>
  );
}

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
            <th class="wide" />
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
