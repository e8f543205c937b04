/** Parses the samples of a metrics page in the text form of Prometheus. */
export class MetricsText {
  readonly #samples: readonly Sample[];

  constructor(text: string) {
    this.#samples = text.split('\n').flatMap(sampleOf);
  }

  /** Sum of a metric over the series whose labels have these values; 0 if there is none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    let sum = 0;
    for (const sample of this.#samples) {
      if (sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
        sum += sample.value;
    }
    return sum;
  }

  /** Sums of a metric, by the values of one label. */
  by(name: string, label: string): Map<string, number> {
    const sums = new Map<string, number>();
    for (const sample of this.#samples) {
      const value = sample.labels[label];
      if (sample.name === name && value !== undefined) sums.set(value, (sums.get(value) ?? 0) + sample.value);
    }
    return sums;
  }
}

type Sample = { name: string; labels: Record<string, string>; value: number };

/** `name{label="value",…} number`, with an optional timestamp; anything else is not a sample. */
const SAMPLE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

function sampleOf(line: string): Sample[] {
  const [, name, list = '', number] = SAMPLE.exec(line) ?? [];
  const value = Number(number);
  if (name === undefined || !Number.isFinite(value)) return [];
  const labels = [...list.matchAll(LABEL)].map(
    ([, label = '', text = '']) => [label, text.replace(/\\(.)/g, unescaped)] as const,
  );
  return [{ name, labels: Object.fromEntries(labels), value }];
}

const unescaped = (_match: string, character: string) => (character === 'n' ? '\n' : character);
