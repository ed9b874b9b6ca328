/** Flows as lines of JSON in a rotated file. What cannot be written is counted. */
import { flowLine } from "../../../flows/flow-answer.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { type LogFile, openLogFile } from "../../../log/log-file.ts";
import { onceEach } from "../../../log/once-each.ts";
import { quoted } from "../../../quote.ts";

/** In all 400 MB at most, and what a full disk allows. */
const ROTATION = { maxSizeBytes: 100_000_000, maxAgeDays: 30, maxCount: 3 } as const;

export class FlowLog {
  notLogged = 0;
  private file: LogFile | undefined;
  private path: string | undefined;
  private readonly complaints;

  constructor(
    path: string | undefined,
    private readonly clock: () => Date,
    warn: (message: string) => void,
    private readonly rotation: {
      readonly maxSizeBytes: number;
      readonly maxAgeDays: number;
      readonly maxCount: number;
    } = ROTATION,
  ) {
    this.complaints = onceEach(warn);
    this.writeTo(path);
  }

  /** From now on to this file; `undefined`: to none. */
  writeTo(path: string | undefined): void {
    if (path === this.path) return;
    this.close();
    this.path = path;
    if (path !== undefined) this.file = openLogFile({ path, ...this.rotation }, this.clock);
  }

  append(record: FlowRecord): void {
    if (this.file === undefined) return;
    try {
      this.file.append(flowLine(record));
      this.complaints.forget();
    } catch (failure) {
      this.notLogged += 1;
      const reason = failure instanceof Error ? failure.message : String(failure);
      this.complaints.report(`Cannot write flows to ${quoted(this.path)}: ${reason}; lines that are lost are counted`);
    }
  }

  close(): void {
    this.file?.close();
    this.file = undefined;
    this.path = undefined;
  }
}
