/** How answers are sent: with headers that keep them out of caches, frames and other pages. */
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { type Timers, unlessAborted } from "../../timers.ts";
import { sendText } from "../../web/send-lines.ts";
import type { StreamEnd } from "../api/session.ts";
import type { PageAsset } from "./page-files.ts";
import type { Refusal } from "./refusal.ts";

const EVERYWHERE = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};
const NO_STORE = { "cache-control": "no-store" };
/** Nothing but the script, the style and the pictures of this console, which talk to this console. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
const DATA_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";

/** Of what never changes: compressed once. */
export class StaticAnswer {
  private readonly body: Buffer;
  private readonly compressed: Buffer;

  constructor(
    private readonly kind: "page" | "asset",
    private readonly asset: PageAsset,
  ) {
    this.body = Buffer.from(asset.body);
    this.compressed = gzipSync(this.body, { level: 9 });
  }

  send(response: ServerResponse, acceptedEncodings: string | undefined): void {
    const isCompressed = /\bgzip\b/.test(acceptedEncodings ?? "");
    const body = isCompressed ? this.compressed : this.body;
    response.writeHead(200, {
      ...EVERYWHERE,
      ...(this.kind === "page" ? NO_STORE : { "cache-control": "private, max-age=31536000, immutable" }),
      "content-security-policy": this.kind === "page" ? PAGE_POLICY : DATA_POLICY,
      "content-type": this.asset.type,
      "content-length": body.length,
      vary: "accept-encoding",
      ...(isCompressed ? { "content-encoding": "gzip" } : {}),
    });
    response.end(body);
  }
}

export function sendJson(response: ServerResponse, status: number, value: object, headers: object = {}): void {
  const text = jsonLine(value);
  response.writeHead(status, {
    ...dataHeaders("application/json"),
    "content-length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

function dataHeaders(type: string) {
  return { ...EVERYWHERE, ...NO_STORE, "content-security-policy": DATA_POLICY, "content-type": type };
}

export function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

export interface LinesMeans {
  readonly signal: AbortSignal;
  readonly timers: Timers;
  /** What a failure of the source means, once the answer has begun. */
  readonly refused: (failure: unknown) => Refusal;
}

/** So long a source has to refuse, which then is the status; after that the client is told that the answer has begun. */
const REFUSAL_MILLISECONDS = 1_000;

/** Throws what the source throws before the answer has begun; afterwards that is the last line. Ends when the signal fires. */
export async function sendLines(
  response: ServerResponse,
  lines: AsyncIterable<string>,
  { signal, timers, refused }: LinesMeans,
): Promise<void> {
  const begin = () => {
    if (response.headersSent || response.destroyed) return;
    response.writeHead(200, dataHeaders("application/x-ndjson"));
    response.flushHeaders();
  };
  const cancelBegin = timers.after(REFUSAL_MILLISECONDS, begin);
  const alive = new KeptAlive(response, timers);
  const iterator = lines[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await unlessAborted(iterator.next(), signal);
      begin();
      if (done === true || response.destroyed) break;
      alive.noteLine();
      await unlessAborted(sendText(response, value), signal);
    }
  } catch (failure) {
    if (!response.headersSent) throw failure;
    const { status, answer } = refused(failure);
    if (!response.destroyed) response.write(jsonLine({ refused: { status, ...answer } } satisfies StreamEnd));
  } finally {
    cancelBegin();
    alive.end();
    iterator.return?.()?.catch(() => {});
  }
  response.end();
}

/** An empty line that often, if nothing else was sent: so both ends notice that the other one has gone. */
const ALIVE_MILLISECONDS = 15_000;
/** A client that has read nothing that many times is not waited for any longer. */
const MOST_UNREAD = 4;

class KeptAlive {
  private isQuiet = true;
  private unread = 0;
  private cancelTimer = () => {};

  constructor(
    private readonly response: ServerResponse,
    private readonly timers: Timers,
  ) {
    this.checkLater();
  }

  noteLine(): void {
    this.isQuiet = false;
  }

  end(): void {
    this.cancelTimer();
  }

  private checkLater(): void {
    this.cancelTimer = this.timers.after(ALIVE_MILLISECONDS, () => {
      this.check();
      this.checkLater();
    });
  }

  private check(): void {
    const { response } = this;
    this.unread = response.writableNeedDrain ? this.unread + 1 : 0;
    if (this.unread >= MOST_UNREAD) response.destroy();
    else if (this.unread === 0 && this.isQuiet && response.headersSent) response.write("\n");
    this.isQuiet = true;
  }
}
