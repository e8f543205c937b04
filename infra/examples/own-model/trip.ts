import { defineAgent, model, needsInput, notice, ToolError } from '@hopline/agent';

const DISTANCES_KM: Readonly<Record<string, number>> = { Hamburg: 290, Munich: 585, Prague: 350 };

/** A hand-written agent around a model. It asks a question, calls the model with a tool, and adds a line of its own. */
export default defineAgent({
  name: 'trip',
  description: 'Plans a trip from Berlin',
  skills: ['Plan a trip'],
  async *run(turn) {
    if (turn.text === '') return yield needsInput('Where do you want to go?');
    yield notice('Asking the model');
    const { usage } = yield* model({
      model: 'gpt-5-mini',
      baseUrl: process.env.OPENAI_BASE_URL,
      apiKey: process.env.OPENAI_API_KEY,
      system: 'You plan trips from Berlin in two sentences. Call distance before you name one.',
      tools: {
        distance: {
          description: 'The distance of a city from Berlin in kilometres',
          parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
          run: ({ city }) => {
            const km = DISTANCES_KM[String(city)];
            if (km === undefined) throw new ToolError(`the distance of ${city} is unknown`);
            return { km };
          },
        },
      },
      // After a death the next attempt continues after the stored answers and results.
      stored: true,
    });
    yield `\n\n(${usage.outputTokens ?? 'an unknown number of'} tokens)\n`;
  },
});
