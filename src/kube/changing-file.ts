/** A file whose content is read again when it has changed: tokens and certificates are rotated while a process runs. */

import { PluginError } from "../errors.ts";
import { statusAt } from "../file-status.ts";
import { quoted } from "../quote.ts";

export class ChangingFile {
  private sign = "";
  private content: Promise<string> | undefined;

  constructor(
    readonly path: string,
    /** For messages: "the token file". */
    private readonly title: string,
  ) {}

  /** The same promise until the file changes. */
  read(): Promise<string> {
    const status = statusAt(this.path);
    const sign = status === undefined ? "" : `${status.place} ${status.changed} ${status.size}`;
    if (this.content === undefined || sign !== this.sign) {
      this.sign = sign;
      this.content = this.readNow();
      // Reported to whoever awaits it.
      this.content.catch(() => this.forget());
    }
    return this.content;
  }

  forget(): void {
    this.content = undefined;
  }

  private async readNow(): Promise<string> {
    try {
      return await Bun.file(this.path).text();
    } catch (cause) {
      throw new PluginError("io-failure", `Cannot read ${this.title} ${quoted(this.path)}: ${reasonOf(cause)}`, {
        cause,
      });
    }
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EACCES: "permission denied",
  EISDIR: "it is a directory",
  ENOTDIR: "part of its path is not a directory",
};

function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
  return REASONS[code] ?? code;
}
