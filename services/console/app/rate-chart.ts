import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

type RatePoint = { at: number; tokens: number; events: number };

const HEIGHT_PX = 200;
/** Minimum length of the time axis. */
const WINDOW_S_MIN = 60;

const dataOf = (points: readonly RatePoint[]): uPlot.AlignedData => [
  points.map(({ at }) => at),
  points.map(({ tokens }) => tokens),
  points.map(({ events }) => events),
];

/**
 * A chart of rates over time that follows the width and the colors of its container. It is not drawn without points, because it would then
 * show the year 1970.
 */
export function openChart(
  place: HTMLElement,
  first: readonly RatePoint[],
): { draw: (points: readonly RatePoint[]) => void; close: () => void } {
  let data = dataOf(first);
  let chart = create();
  function create(): uPlot {
    const styles = getComputedStyle(place);
    const color = (name: string) => styles.getPropertyValue(name);
    const axis = {
      stroke: color('--muted'),
      grid: { stroke: color('--line'), width: 1 },
      ticks: { show: false },
      font: '12px system-ui',
    };
    const line = (name: string) => ({ stroke: color(name), width: 2, points: { show: false } });
    return new uPlot(
      {
        width: place.clientWidth,
        height: HEIGHT_PX,
        legend: { show: false },
        cursor: { points: { size: 6 } },
        scales: {
          x: { range: (_chart, first, last) => [Math.min(first, last - WINDOW_S_MIN), last] },
          y: { range: (_chart, _least, most) => [0, Math.max(1, most * 1.1)] },
        },
        axes: [
          { ...axis, values: (_chart, splits) => splits.map(at => new Date(at * 1_000).toLocaleTimeString('en-GB')) },
          { ...axis, size: 48 },
        ],
        series: [{}, line('--accent'), line('--violet')],
      },
      data,
      place,
    );
  }
  const resized = new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: HEIGHT_PX }));
  resized.observe(place);
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  const again = () => {
    chart.destroy();
    chart = create();
  };
  scheme.addEventListener('change', again);
  return {
    draw: points => {
      data = dataOf(points);
      chart.setData(data);
    },
    close: () => {
      resized.disconnect();
      scheme.removeEventListener('change', again);
      chart.destroy();
    },
  };
}
