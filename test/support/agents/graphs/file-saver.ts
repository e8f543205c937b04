import { readFileSync, writeFileSync } from 'node:fs';
import { MemorySaver } from '@langchain/langgraph';

type Put = Parameters<MemorySaver['put']>;
type PutWrites = Parameters<MemorySaver['putWrites']>;

/** A checkpointer that survives its process: LangGraph's MemorySaver, written to a file with every checkpoint. */
export class FileSaver extends MemorySaver {
  readonly #path: string;

  constructor(path: string) {
    super();
    this.#path = path;
    try {
      const { storage, writes } = JSON.parse(readFileSync(path, 'utf8'), revive);
      Object.assign(this, { storage, writes });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }

  override async put(...args: Put): ReturnType<MemorySaver['put']> {
    const config = await super.put(...args);
    this.#save();
    return config;
  }

  override async putWrites(...args: PutWrites): Promise<void> {
    await super.putWrites(...args);
    this.#save();
  }

  #save(): void {
    writeFileSync(this.#path, JSON.stringify({ storage: this.storage, writes: this.writes }, keep));
  }
}

function keep(_key: string, value: unknown): unknown {
  return value instanceof Uint8Array ? { bytes: Buffer.from(value).toString('base64') } : value;
}

function revive(_key: string, value: unknown): unknown {
  const { bytes } = (value ?? {}) as { bytes?: unknown };
  return typeof bytes === 'string' ? new Uint8Array(Buffer.from(bytes, 'base64')) : value;
}
