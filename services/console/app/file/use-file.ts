import { useEffect, useState } from 'preact/hooks';
import { chunksOf } from '../follow-task.ts';
import { loadPart } from '../load-part.ts';
import { enterFragment, isInFragment } from '../routes.ts';
import type { OpenedFile } from './open-file.ts';

/** The build of the page for `hopline view` (vite.config.ts), a single file without a server. */
export const IS_STATIC = import.meta.env?.MODE === 'file';

/** Reading a file of this machine never pauses for this long. */
const SILENCE_MS_MAX = 60_000;

export type FileState = {
  opened: OpenedFile | undefined;
  isReading: boolean;
  /** One sentence about a file that cannot be shown. */
  fault: string;
  /** A file is held over the page. */
  isOver: boolean;
  open(file: File): void;
};

/** The file of the page: dropped onto it, chosen, or contained in it. It stays in this browser. */
export function useFile(): FileState {
  const [opened, setOpened] = useState<OpenedFile>();
  const [isReading, setReading] = useState(() => containedFile() !== undefined);
  const [fault, setFault] = useState('');
  const [isOver, setOver] = useState(false);
  const open = async (file: File) => {
    setReading(true);
    setFault('');
    try {
      // Only people who open a file load the code that reads it.
      const { openFile } = await loadPart(import('./open-file.ts'));
      const next = await openFile(file.name, chunksOf(file.stream(), SILENCE_MS_MAX));
      // A link into the page of a file keeps its place.
      if (!(IS_STATIC && opened === undefined && isInFragment())) enterFragment(next.path, IS_STATIC);
      setOpened(next);
    } catch (error) {
      setFault(`${file.name}: ${(error as Error).message}`);
    }
    setReading(false);
  };
  useEffect(() => {
    const contained = containedFile();
    if (contained !== undefined) void open(contained);
  }, []);
  useEffect(() => {
    const hasFile = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') === true;
    const onOver = (event: DragEvent) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const onLeave = ({ relatedTarget }: DragEvent) => {
      if (relatedTarget === null) setOver(false);
    };
    const onDrop = (event: DragEvent) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      setOver(false);
      const file = event.dataTransfer?.files[0];
      if (file !== undefined) void open(file);
    };
    addEventListener('dragover', onOver);
    addEventListener('dragleave', onLeave);
    addEventListener('drop', onDrop);
    return () => {
      removeEventListener('dragover', onOver);
      removeEventListener('dragleave', onLeave);
      removeEventListener('drop', onDrop);
    };
  });
  return { opened, isReading, fault, isOver, open: file => void open(file) };
}

/** The file that `hopline view` has written into the page. */
function containedFile(): File | undefined {
  const element = IS_STATIC ? document.getElementById('task-file') : null;
  if (element === null) return undefined;
  const { name, text } = JSON.parse(element.textContent ?? '') as { name: string; text: string };
  return new File([text], name);
}
