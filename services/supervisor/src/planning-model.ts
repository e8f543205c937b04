import type { supervisorConfig } from './config.ts';
import type { ModelSettings } from './model-turn.ts';

type Settings = ReturnType<typeof supervisorConfig.load>;

/** The model that conducts turns, if one is configured; its library is loaded only then. */
export async function planningModel(settings: Settings): Promise<ModelSettings | undefined> {
  const { HOPLINE_PLANNER: planner, HOPLINE_MODEL: model, OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey } = settings;
  if (planner !== 'model' || model === undefined) return undefined;
  const { createChatModel } = await import('@hopline/chat-model');
  const limits = { firstTokenMsMax: settings.HOPLINE_MODEL_FIRST_TOKEN_MS, silenceMsMax: settings.HOPLINE_MODEL_SILENCE_MS };
  return {
    model: createChatModel({ model, baseUrl, apiKey, limits, pricesFile: settings.HOPLINE_MODEL_PRICES_FILE }),
    stepsMax: settings.HOPLINE_MODEL_STEPS_MAX,
    sumsUp: settings.HOPLINE_MODEL_SUMMARY,
  };
}
