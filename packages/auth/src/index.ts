export { authFromSettings } from './auth-settings.ts';
export type { Authenticator, AuthOptions, Headers } from './authenticator.ts';
export { createAuthenticator } from './authenticator.ts';
export type { Caller } from './caller.ts';
export { DOOR_SETTINGS, withDoorChecked } from './door-settings.ts';
export type { DoorTls } from './door-tls.ts';
export { TLS_HANDSHAKE_MS_MAX } from './door-tls.ts';
export { isLoopback } from './loopback.ts';
export { tlsFromSettings } from './tls-settings.ts';
