import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';

/**
 * Makes a nats-server reload its configuration whenever its certificate changes. It runs in a container next to the server, in the image of
 * Hopline, and shares its process namespace. Arguments: the server's PID file, and the folder of `ca.crt`, `tls.crt` and `tls.key`.
 */
const [pidFile, folder] = process.argv.slice(2);
if (pidFile === undefined || folder === undefined)
  throw new Error('usage: nats-reload PID_FILE FOLDER (PID file of nats-server, folder of its certificate)');

const RECHECK_MS = 2_000;
/**
 * The files in force, which the server had at its last signal. Empty at first, so that a renewal before the start of this program also
 * counts.
 */
let inForce = '';
let reported = '';

/** Reads the content, because Kubernetes replaces the folder of a mounted Secret through a symbolic link. */
function readFiles(from: string): { ca: string; cert: string; key: string } {
  const [ca, cert, key] = ['ca.crt', 'tls.crt', 'tls.key'].map(name => readFileSync(join(from, name), 'utf8'));
  return { ca: ca!, cert: cert!, key: key! };
}

/** Rejects a PID that another program has: the file outlives a server that died. */
function serverPid(file: string): number {
  const pid = Number(readFileSync(file, 'utf8'));
  const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  if (name !== 'nats-server') throw new Error(`process ${pid} is not nats-server`);
  return pid;
}

function check(pidFile: string, folder: string): void {
  try {
    const files = readFiles(folder);
    const seen = JSON.stringify(files);
    if (seen === inForce) return;
    // Throws for a key that does not match. The server would keep its certificate, and would not read a later one without a signal.
    createSecureContext(files);
    process.kill(serverPid(pidFile), 'SIGHUP');
    inForce = seen;
    log('info', 'signal sent: nats-server reads its certificate');
  } catch (error) {
    // OpenSSL's code or that of the file system, never file content.
    const { code, message } = error as NodeJS.ErrnoException;
    log('warn', `the certificate or nats-server cannot be used yet: ${code ?? message}`);
  }
}

/** A repeated warning is written once. */
function log(level: 'info' | 'warn', msg: string): void {
  if (level === 'warn' && msg === reported) return;
  reported = msg;
  process.stdout.write(`${JSON.stringify({ level, time: new Date().toISOString(), msg })}\n`);
}

check(pidFile, folder);
const timer = setInterval(check, RECHECK_MS, pidFile, folder);
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => clearInterval(timer));
