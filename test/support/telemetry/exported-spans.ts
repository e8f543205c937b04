type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';
export type AttributeValue = string | number | boolean;

/** A span as it was exported. */
export type ExportedSpan = {
  service: string;
  resource: Record<string, AttributeValue>;
  traceId: string;
  spanId: string;
  parentId: string | undefined;
  name: string;
  kind: SpanKind;
  /** Epoch milliseconds. */
  startMs: number;
  endMs: number;
  attributes: Record<string, AttributeValue>;
  events: { name: string; attributes: Record<string, AttributeValue> }[];
  links: { traceId: string; spanId: string }[];
  isError: boolean;
};

/** Kinds by their numbers in OTLP. */
export const SPAN_KINDS: readonly SpanKind[] = ['internal', 'internal', 'server', 'client', 'producer', 'consumer'];
const POLL_MS = 25;

/** The spans that a backend has so far. */
export class ExportedSpans {
  spans: readonly ExportedSpan[] = [];
  /** Why the last read failed. */
  protected fault: unknown;

  /** The spans of a task, in the order of their start. */
  ofTask(taskId: string): ExportedSpan[] {
    const traces = new Set(this.spans.filter(span => span.attributes['a2a.task.id'] === taskId).map(({ traceId }) => traceId));
    return this.spans.filter(({ traceId }) => traces.has(traceId)).sort((a, b) => a.startMs - b.startMs);
  }

  ofTrace(traceId: string): ExportedSpan[] {
    return this.spans.filter(span => span.traceId === traceId).sort((a, b) => a.startMs - b.startMs);
  }

  /** Waits until `find` returns something that is neither undefined nor false. */
  async until<T>(what: string, find: (spans: readonly ExportedSpan[]) => T | false | undefined, msMax = 60_000): Promise<T> {
    const until = performance.now() + msMax;
    for (;;) {
      const found = find(this.spans);
      if (found !== undefined && found !== false) return found;
      if (performance.now() > until) throw new Error(`${what} was not exported:\n${drawTree(this.spans)}`, { cause: this.fault });
      await new Promise(resolve => setTimeout(resolve, POLL_MS));
    }
  }
}

/** Numbers of segments, which add up to those of the hop. */
const SUMS = ['hopline.bytes_in', 'hopline.bytes_out', 'hopline.chunks', 'hopline.delivered', 'hopline.tool_calls'];

/** The span of a hop. If the hop has several segments, it is the last one, with the counts and links of the earlier ones. */
export type Hop = ExportedSpan & {
  /** Span ids of its segments, in their order. */
  segmentIds: string[];
};

/**
 * Joins segments that ended because of their age with those that followed, so that the tree is the same on a slow and on a fast machine. A
 * segment without a successor is left out, because the hop's last segment was lost with its process.
 */
export function joinSegments(spans: readonly ExportedSpan[]): Hop[] {
  const aged = new Map<string, Hop>();
  const hops: Hop[] = [];
  for (const span of [...spans].sort((a, b) => a.startMs - b.startMs)) {
    const { spanId, name, links } = span;
    const before = links.map(link => aged.get(link.spanId)).find(hop => hop?.name === name && hop.parentId === span.parentId);
    const hop = before === undefined ? { ...span, segmentIds: [spanId] } : joined(before, span);
    if (span.attributes['hopline.segment.reason'] === 'age') aged.set(spanId, hop);
    else hops.push(hop);
  }
  const lastIds = new Map(hops.flatMap(hop => hop.segmentIds.map(id => [id, hop.spanId] as const)));
  const lastOf = (id: string) => lastIds.get(id) ?? id;
  return hops.map(hop => ({
    ...hop,
    parentId: hop.parentId && lastOf(hop.parentId),
    links: hop.links.map(link => ({ ...link, spanId: lastOf(link.spanId) })),
  }));
}

function joined(before: Hop, after: ExportedSpan): Hop {
  const sums = SUMS.filter(key => before.attributes[key] !== undefined || after.attributes[key] !== undefined).map(
    key => [key, Number(before.attributes[key] ?? 0) + Number(after.attributes[key] ?? 0)] as const,
  );
  return {
    ...after,
    startMs: before.startMs,
    attributes: { ...after.attributes, ...Object.fromEntries(sums) },
    events: [...before.events, ...after.events],
    links: [...before.links, ...after.links.filter(({ spanId }) => spanId !== before.spanId)],
    isError: before.isError || after.isError,
    segmentIds: [...before.segmentIds, after.spanId],
  };
}

const byName = (a: ExportedSpan, b: ExportedSpan) => a.name.localeCompare(b.name) || a.startMs - b.startMs;

/** The spans of one trace as an indented text, each below its parent, by name; a span whose parent is missing has a mark. */
export function drawTree(spans: readonly ExportedSpan[]): string {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const roots = spans.filter(({ parentId }) => parentId === undefined || !ids.has(parentId));
  const draw = (span: ExportedSpan, depth: number): string[] => {
    const mark = depth === 0 && span.parentId !== undefined ? '(parent missing) ' : '';
    const children = spans.filter(({ parentId }) => parentId === span.spanId).sort(byName);
    return [`${'  '.repeat(depth)}${mark}${span.name} [${span.kind}]`, ...children.flatMap(child => draw(child, depth + 1))];
  };
  return roots
    .sort((a, b) => a.startMs - b.startMs)
    .flatMap(root => draw(root, 0))
    .join('\n');
}
