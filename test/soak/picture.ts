import type { Sample } from './samples.ts';

const WIDTH = 260;
const HEIGHT = 90;
const GAP = 52;
const COLUMNS = 3;
const LABEL = 16;

/** The values over time as small line charts, one for each kind; the processes of a kind share a chart. The picture is an SVG. */
export function pictureOf(samples: readonly Sample[]): string {
  const charts = Map.groupBy(new Set(samples.flatMap(({ values }) => Object.keys(values))), chartOf);
  const rows = Math.ceil(charts.size / COLUMNS);
  const width = COLUMNS * (WIDTH + GAP) + GAP;
  const height = rows * (HEIGHT + GAP + LABEL) + GAP;
  const drawn = [...charts].map(([chart, names], index) => {
    const x = GAP + (index % COLUMNS) * (WIDTH + GAP);
    const y = GAP + Math.floor(index / COLUMNS) * (HEIGHT + GAP + LABEL);
    return chartAt(
      x,
      y,
      chart,
      names.map(name => samples.flatMap(({ atMinutes, values }) => pointOf(atMinutes, values[name]))),
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">
<title>Values of a soak over time</title>
<rect width="${width}" height="${height}" fill="#fff"/>
${drawn.join('\n')}
</svg>
`;
}

type Point = [minutes: number, value: number];

const pointOf = (minutes: number, value: number | undefined): Point[] => (value === undefined ? [] : [[minutes, value]]);

/** `MiB relay-1` and `MiB ingress-2` are in one chart, `MiB of the services`. */
function chartOf(name: string): string {
  return name.replace(/^(MiB|handles) (?:relay|supervisor|sub-agent|notifier|ingress)-\d$/, '$1 of each process');
}

function chartAt(x: number, y: number, title: string, lines: Point[][]): string {
  const all = lines.flat();
  const right = Math.max(...all.map(([minutes]) => minutes), 1 / 60);
  const top = 1.1 * Math.max(...all.map(([, value]) => value), 1);
  const place = ([minutes, value]: Point) =>
    `${(x + (WIDTH * minutes) / right).toFixed(1)},${(y + HEIGHT - (HEIGHT * value) / top).toFixed(1)}`;
  const paths = lines.map(
    points => `<polyline fill="none" stroke="#2563eb" stroke-opacity="0.6" points="${points.map(place).join(' ')}"/>`,
  );
  return `<text x="${x}" y="${y - 6}">${title}</text>
<path d="M${x} ${y}V${y + HEIGHT}H${x + WIDTH}" fill="none" stroke="#999"/>
<text x="${x - 4}" y="${y + 8}" text-anchor="end">${Math.round(top)}</text><text x="${x - 4}" y="${y + HEIGHT}" text-anchor="end">0</text>
<text x="${x + WIDTH}" y="${y + HEIGHT + 13}" text-anchor="end">${right.toFixed(right < 10 ? 1 : 0)} min</text>
${paths.join('\n')}`;
}
