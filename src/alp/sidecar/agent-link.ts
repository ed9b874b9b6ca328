/**
 * Stays connected to the node agent, and applies its updates.
 *
 * While the agent is away, decisions go on with the last state, as the kernel keeps its rules. An agent that refuses this
 * sidecar, or sends what it cannot use, is different: the policies may have changed, and no later change would arrive.
 * The state is dropped then, and everything is denied.
 */
import type { Socket } from "bun";
import { quoted } from "../../quote.ts";
import { LineBuffer } from "../protocol/line-buffer.ts";
import type { SidecarUpdate } from "../protocol/sidecar-state.ts";
import { AgentConversation, RefusedByAgent } from "./agent-conversation.ts";
import { connectProblem } from "./connect-problem.ts";
import type { SidecarLog } from "./sidecar-log.ts";

export interface AgentLinkOptions {
  /** Of the agent's socket. */
  readonly path: string;
  /** Of this sidecar. */
  readonly version: string;
  readonly judge: { readonly revision: number; apply(update: SidecarUpdate): void; clear(): void };
  readonly log: SidecarLog;
  /** In milliseconds, by a monotonic clock. */
  elapsed(): number;
  /** Ends early, without an error, when the signal fires. */
  wait(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** An agent that is restarted counts on the sidecars to be back soon. */
const RECONNECT_MILLISECONDS = 100;
/** After a conversation that would fail in the same way again. */
const SLOW_MILLISECONDS = 5_000;
const WELCOME_MILLISECONDS = 5_000;
const MOST_LINE_BYTES = 256 * 1024 * 1024;

export class AgentLink {
  private awaySince: number | undefined;
  private updateCount = 0;
  /** The last problem that was logged: it is logged once, however often it occurs. */
  private lastProblem = "";
  private dropped: string | undefined;

  constructor(private readonly options: AgentLinkOptions) {
    this.awaySince = options.elapsed();
  }

  /** Since when there is no agent, by the monotonic clock; `undefined` while it is connected. */
  get disconnectedSince(): number | undefined {
    return this.awaySince;
  }

  /** How many updates were applied. */
  get updates(): number {
    return this.updateCount;
  }

  /** Why the policies were dropped; `undefined` if they were not, or new ones are applied. Names nothing of the policies. */
  get droppedBecause(): string | undefined {
    return this.dropped;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { wait } = this.options;
    while (!signal.aborted) {
      const problem = await this.converse(signal);
      if (signal.aborted) return;
      this.noteEnd(problem);
      await wait(isLasting(problem) ? SLOW_MILLISECONDS : RECONNECT_MILLISECONDS, signal);
    }
  }

  /** Returns why it ended. */
  private async converse(signal: AbortSignal): Promise<unknown> {
    const { path, version } = this.options;
    const conversation = new AgentConversation(this.options.judge);
    const received = new LineBuffer(MOST_LINE_BYTES);
    const { promise: ended, resolve: end } = Promise.withResolvers<unknown>();
    let socket: Socket<undefined>;
    try {
      socket = await Bun.connect<undefined>({
        unix: path,
        socket: {
          data: (stream, bytes) => {
            try {
              const isWhole = received.add(bytes, (line) => this.receive(stream, conversation, line));
              if (!isWhole) throw new RangeError(`a line is longer than ${MOST_LINE_BYTES} bytes`);
            } catch (failure) {
              end(failure);
            }
          },
          close: () => end(new Disconnected()),
          error: (_, failure) => end(new Disconnected(failure)),
        },
      });
    } catch (failure) {
      return new Disconnected(failure);
    }
    const giveUp = () => end(new Disconnected());
    signal.addEventListener("abort", giveUp, { once: true });
    const late = setTimeout(() => {
      if (conversation.agentVersion === undefined) end(new Unresponsive("the node agent did not respond"));
    }, WELCOME_MILLISECONDS);
    try {
      send(socket, conversation.hello(version));
    } catch (failure) {
      end(failure);
    }
    const problem = await ended;
    clearTimeout(late);
    signal.removeEventListener("abort", giveUp);
    socket.terminate();
    return problem;
  }

  /** Returns `true`: more lines are welcome. Throws an error if the conversation cannot go on. */
  private receive(socket: Socket<undefined>, conversation: AgentConversation, line: string): true {
    const reply = conversation.receive(line);
    if (reply === undefined) return true;
    send(socket, reply);
    this.noteUpdate(conversation);
    return true;
  }

  private noteUpdate({ agentVersion }: AgentConversation): void {
    const { judge, log, elapsed } = this.options;
    this.updateCount += 1;
    this.dropped = undefined;
    if (this.awaySince === undefined) {
      log.debug("Policies updated", { revision: judge.revision });
      return;
    }
    const seconds = ((elapsed() - this.awaySince) / 1000).toFixed(1);
    log.info("Synchronised with the node agent", { agent: agentVersion, after: `${seconds} s` });
    this.awaySince = undefined;
    this.lastProblem = "";
  }

  private noteEnd(problem: unknown): void {
    const { log, judge, path, elapsed } = this.options;
    const reason = problem instanceof Error ? problem.message : String(problem);
    if (isUnusable(problem)) this.drop(problem);
    const isNew = this.awaySince === undefined;
    this.awaySince ??= elapsed();
    if (!isNew && (reason === this.lastProblem || (this.lastProblem !== "" && !isLasting(problem)))) return;
    this.lastProblem = reason;
    const consequence =
      judge.revision === 0
        ? "all requests are denied until it has sent the policies"
        : "decisions continue with the policies that it sent last";
    const state = isUnusable(problem) ? "Cannot get policies from" : "Not connected to";
    log.warn(`${state} the node agent at ${quoted(path)}: ${consequence}`, { reason });
  }

  private drop(problem: unknown): void {
    this.options.judge.clear();
    this.dropped =
      problem instanceof RefusedByAgent
        ? `the node agent refuses this sidecar: ${problem.message}`
        : "the node agent sent what this sidecar cannot use: the log has the details";
  }
}

/** The agent is away: usually it is restarted. */
class Disconnected extends Error {
  constructor(cause?: unknown) {
    super(cause === undefined ? "the connection was closed" : descriptionOf(cause), { cause });
  }
}

/** There is an agent, but it hangs. */
class Unresponsive extends Error {}

function descriptionOf(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure);
  return "code" in failure && typeof failure.code === "string" ? connectProblem(failure.code) : failure.message;
}

/** Whether the next conversation would probably end in the same way. */
function isLasting(problem: unknown): boolean {
  return !(problem instanceof Disconnected);
}

/** Whether the agent is there, but no policies can be got from it. */
function isUnusable(problem: unknown): boolean {
  return !(problem instanceof Disconnected || problem instanceof Unresponsive);
}

/** Lines of the sidecar are short: an agent that leaves the buffer of the socket full does not follow the protocol. */
function send(socket: Socket<undefined>, line: string): void {
  const written = socket.write(line);
  if (written < 0) throw new Disconnected();
  if (written < line.length) throw new Unresponsive("the node agent does not read");
}
