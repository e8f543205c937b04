import { setTimeout as delay } from 'node:timers/promises';
import { artifact, defineAgent, tool } from '@hopline/agent';

const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

/** Put the request to your weather service here, with `signal`, so that it ends when the task is canceled. */
async function temperature(city: string, day: string, signal: AbortSignal): Promise<number> {
  await delay(200, undefined, { signal });
  return (7 * city.length + 3 * day.length) % 30;
}

export default defineAgent({
  name: 'NAME',
  description: 'Forecasts the temperature of a city for a week',
  skills: [{ name: 'Forecast the temperature of a city', examples: ['Paris'] }],
  async *run({ text, signal }) {
    const city = text.trim() || 'Berlin';
    const rows = [];
    for (const day of DAYS) {
      const degrees = yield* tool('temperature', { city, day }, () => temperature(city, day, signal));
      rows.push(`${day},${degrees}\n`);
      for (const word of `${day} will have ${degrees} degrees in ${city}.\n`.split(/(?<=\s)/)) {
        await delay(50, undefined, { signal });
        yield word;
      }
    }
    yield artifact({ name: 'forecast.csv', text: rows.join('') });
  },
});
