/**
 * The socket of this node at which root asks for flows: paths and parameters of src/flows/flow-request.ts, answers as lines of
 * JSON. An answer is made as fast as it is read, so that who reads slowly costs no memory; a follower that is too slow is told
 * how much it missed (flow-history.ts).
 */
import { chmodSync, lstatSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type FlowAnswer, type FlowQuestion, type FlowSource, flowLine } from "../../../flows/flow-answer.ts";
import { FlowQueryError } from "../../../flows/flow-query.ts";
import { readTarget } from "../../../flows/flow-request.ts";
import { SocketFile } from "../../../grpc/socket-file.ts";
import { quoted } from "../../../quote.ts";

export interface FlowServerOptions {
  readonly path: string;
  readonly node: string;
  readonly source: FlowSource;
}

/** Of answers that are being read: each may search the whole history. */
const MOST_ANSWERS = 32;
/** Nobody but root may connect. */
const ONLY_OWNER = 0o600;
/** A follower is told the losses more often than this. */
const IDLE_SECONDS = 60;
/** A request has no body. */
const MOST_BODY_BYTES = 1_024;
const ENCODER = new TextEncoder();

export class FlowServer {
  private readonly server: Bun.Server<undefined>;
  private readonly file: SocketFile;
  private readonly stopping = new AbortController();
  private answers = 0;

  /** Takes the place of the socket of a collector that has ended. Throws if it cannot listen there. */
  constructor(private readonly options: FlowServerOptions) {
    const { path } = options;
    const former = lstatSync(path, { throwIfNoEntry: false });
    if (former !== undefined && !former.isSocket())
      throw new Error(`Cannot listen at ${quoted(path)}: there is a file that is not a socket; remove it`);
    // It appears with its mode, in place of the former one: nobody finds none, and nobody else may connect for a moment.
    const folder = join(dirname(path), `.${basename(path)}.new`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { mode: 0o700 });
    const hidden = join(folder, basename(path));
    this.server = Bun.serve({
      ...{ unix: hidden, maxRequestBodySize: MOST_BODY_BYTES },
      fetch: (request: Request, server: Bun.Server<undefined>) => {
        server.timeout(request, IDLE_SECONDS);
        return this.reply(request);
      },
    });
    chmodSync(hidden, ONLY_OWNER);
    renameSync(hidden, path);
    rmSync(folder, { recursive: true });
    this.file = new SocketFile(path);
  }

  async close(): Promise<void> {
    this.stopping.abort();
    this.file.remove();
    await this.server.stop(true);
  }

  private reply(request: Request): Response {
    if (request.method !== "GET") return refusal(405, `${request.method} is not supported; use GET`);
    if (this.answers >= MOST_ANSWERS) return refusal(503, `${MOST_ANSWERS} others are being answered; try again later`);
    try {
      const question = readTarget(request.url);
      if (question === undefined) return refusal(404, "no such path; use /flows, /rollups or /explanation");
      return this.answer(question, AbortSignal.any([request.signal, this.stopping.signal]));
    } catch (failure) {
      if (failure instanceof FlowQueryError) return refusal(400, failure.message);
      throw failure;
    }
  }

  private answer(question: FlowQuestion, signal: AbortSignal): Response {
    const ending = new AbortController();
    const either = AbortSignal.any([signal, ending.signal]);
    const lines = this.options.source.answer(question, either)[Symbol.asyncIterator]();
    this.answers += 1;
    let isOpen = true;
    const end = () => {
      if (isOpen) this.answers -= 1;
      isOpen = false;
      ending.abort();
    };
    signal.addEventListener("abort", end, { once: true });
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const line = await nextLine(lines, this.options.node);
        if (line !== undefined) return controller.enqueue(line);
        end();
        controller.close();
      },
      cancel: end,
    });
    return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
  }
}

/** `undefined`: everything is said. */
async function nextLine(lines: AsyncIterator<FlowAnswer>, node: string): Promise<Uint8Array | undefined> {
  try {
    const { done, value } = await lines.next();
    return done === true ? undefined : ENCODER.encode(flowLine(value));
  } catch (failure) {
    await lines.return?.();
    const message = failure instanceof Error ? failure.message : String(failure);
    return ENCODER.encode(flowLine({ problem: { node, message } }));
  }
}

function refusal(status: number, message: string): Response {
  return Response.json({ message }, { status });
}
