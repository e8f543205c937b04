import packageJson from '../package.json' with { type: 'json' };

/** Version of Hopline. */
export const VERSION = packageJson.version;
