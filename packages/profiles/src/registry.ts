import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { AION } from './aion.ts';
import { CAIPE } from './caipe.ts';
import { CHAT } from './chat.ts';
import { checkProfile, ProfileError } from './check-profile.ts';
import type { Profile } from './profile.ts';
import { TRANSPARENT } from './transparent.ts';

export type Profiles = ReadonlyMap<string, Profile>;

/** The built-in profiles. */
export const PROFILES: Profiles = new Map([CAIPE, TRANSPARENT, AION, CHAT].map(profile => [profile.name, profile]));

/** Setting of the services that look up profiles: ingress needs only the name, the supervisor the profile itself. */
export const PROFILE_SETTINGS = {
  HOPLINE_PROFILE_MODULE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 1_024,
    doc: 'Path of a module whose default export is one more profile. Ingress and supervisor need the same value.',
  },
} as const;

/** PROFILES and the profile from HOPLINE_PROFILE_MODULE. Rejects with ProfileError when the module or its profile is wrong. */
export async function loadProfiles(module: string | undefined): Promise<Profiles> {
  if (module === undefined) return PROFILES;
  const exported: { default?: unknown } = await import(pathToFileURL(resolve(module)).href).catch((error: unknown) => {
    throw new ProfileError(`HOPLINE_PROFILE_MODULE: ${module} could not be loaded`, { cause: error });
  });
  const profile = checkProfile(exported.default);
  if (PROFILES.has(profile.name)) throw new ProfileError(`profile.name: "${profile.name}" is built in; choose another name`);
  return new Map([...PROFILES, [profile.name, profile]]);
}
