import { ARTIFACT_KINDS } from './kinds.ts';
import type { Profile } from './profile.ts';

/** A profile module is invalid. The message names the member. */
export class ProfileError extends Error {
  override readonly name = 'ProfileError';
}

/** A module's default export as a profile. Throws ProfileError with the path of the wrong member. */
export function checkProfile(value: unknown): Profile {
  const profile = member(value, 'profile');
  if (typeof profile.name !== 'string' || !/^[a-z0-9][a-z0-9-]{0,31}$/.test(profile.name))
    throw new ProfileError('profile.name must be 1 to 32 of a-z, 0-9 and - (not first)');
  if (profile.turn !== 'conduct' && profile.turn !== 'forward')
    throw new ProfileError('profile.turn must be "conduct" or "forward"');
  for (const [name, kind] of Object.entries(member(profile.kinds, 'profile.kinds')))
    if (!ARTIFACT_KINDS.has(kind))
      throw new ProfileError(`profile.kinds.${name} must be one of ${[...ARTIFACT_KINDS].join(', ')}`);
  checkAgent(member(profile.agent, 'profile.agent'), profile.turn);
  if (profile.turn === 'conduct') checkConducting(profile);
  return value as Profile;
}

function checkAgent(agent: Record<string, unknown>, turn: 'conduct' | 'forward'): void {
  const text = member(agent.text, 'profile.agent.text');
  // Only a profile in which the supervisor conducts turns has an artifact for the answer.
  const allowed = turn === 'conduct' ? ['answer'] : ['own', 'transitory'];
  if (!allowed.includes(text.as as string))
    throw new ProfileError(`profile.agent.text.as must be ${allowed.join(' or ')} where turn is ${turn}`);
  if (text.as === 'answer') {
    if (text.nestedPlan !== undefined) string(text.nestedPlan, 'profile.agent.text.nestedPlan');
  } else header(text.artifact, 'profile.agent.text.artifact');
  if (agent.progress !== 'status') header(agent.progress, 'profile.agent.progress');
  notices(agent.notices, 'profile.agent.notices');
}

function checkConducting(profile: Record<string, unknown>): void {
  if (profile.plan !== 'status') {
    const plan = member(profile.plan, 'profile.plan');
    header(plan.streaming, 'profile.plan.streaming');
    header(plan.complete, 'profile.plan.complete');
  }
  header(profile.answer, 'profile.answer');
  if (profile.result !== undefined) header(profile.result, 'profile.result');
  notices(profile.calls, 'profile.calls');
}

function notices(value: unknown, path: string): void {
  const templates = member(value, path);
  if (templates.as !== undefined && templates.as !== 'status') throw new ProfileError(`${path}.as must be "status" or absent`);
  const optional = ['waiting', 'rejected'].filter(phase => templates[phase] !== undefined);
  for (const phase of ['start', 'end', 'failed', ...optional]) {
    const template = member(templates[phase], `${path}.${phase}`);
    for (const field of ['name', 'description', 'text']) string(template[field], `${path}.${phase}.${field}`);
  }
}

function header(value: unknown, path: string): void {
  const { name, description } = member(value, path);
  string(name, `${path}.name`);
  if (description !== undefined) string(description, `${path}.description`);
}

function member(value: unknown, path: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new ProfileError(`${path} must be an object`);
  return value as Record<string, unknown>;
}

function string(value: unknown, path: string): void {
  if (typeof value !== 'string' || value === '') throw new ProfileError(`${path} must be a string that is not empty`);
}
