import { rmSync } from 'node:fs';

/** Folders to remove when this process ends during a step. @type {Set<string>} */
const folders = new Set();

process.once('exit', () => {
  for (const folder of folders) remove(folder);
});

/** @param {string} folder @returns {() => void} removes the folder now */
export function removeAtExit(folder) {
  folders.add(folder);
  return () => {
    folders.delete(folder);
    remove(folder);
  };
}

function remove(folder) {
  rmSync(folder, { recursive: true, force: true });
}
