import { visibleText } from '../plain-text.ts';
import type { FileState } from './use-file.ts';

/** A button that chooses a file, for those who do not drop one. */
export function FileButton({ file: { open }, label }: { file: FileState; label: string }) {
  return (
    <label
      class="button button-quiet file-button"
      title="A task file (*.hopline.jsonl). It can also be dropped anywhere on the page."
    >
      <span class="only-wide">{label}</span>
      <span class="only-narrow">File</span>
      <input
        type="file"
        class="visually-hidden"
        accept=".jsonl"
        onChange={({ currentTarget }) => {
          const [chosen] = currentTarget.files ?? [];
          if (chosen !== undefined) open(chosen);
          // The same file can be chosen again, after it was exported again.
          currentTarget.value = '';
        }}
      />
    </label>
  );
}

/** Shown in place of a page of a file while there is no file. */
export function NoFile({ file }: { file: FileState }) {
  return (
    <div class="empty">
      <strong>{file.isReading ? 'Reading the file …' : 'No file is open'}</strong>
      {!file.isReading && (
        <p class="muted">
          Drop a task file (<code>*.hopline.jsonl</code>) here. It stays in this browser, and a reload forgets it.
        </p>
      )}
      {!file.isReading && (
        <p>
          <FileButton file={file} label="Choose a file" />
        </p>
      )}
    </div>
  );
}

export function FileNotices({ file: { fault, isOver } }: { file: FileState }) {
  return (
    <>
      {fault !== '' && (
        <p class="notice notice-error outage" role="alert">
          {visibleText(fault)}
        </p>
      )}
      {isOver && <div class="drop-hint">Drop the task file to see it here. It stays in this browser.</div>}
    </>
  );
}
