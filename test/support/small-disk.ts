import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Only root may mount a disk. */
export const canMountDisk = process.platform === 'linux' && process.getuid?.() === 0;

/** A small disk in memory. */
export function mountDisk(bytes: number): { path: string; unmount(): void } {
  const path = mkdtempSync(join(tmpdir(), 'hopline-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'hopline-test', path]);
  return {
    path,
    unmount: () => {
      execFileSync('umount', ['-l', path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Writes a file until its disk is full. */
export function fillDisk(path: string): void {
  for (const bytes of [1024 ** 2, 4_096]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(bytes), { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}
