/**
 * Sends requests to an endpoint that responds: rotation, time limits, tokens, and
 * the switch from the gateway to gRPC. It does not interpret requests or
 * responses.
 */
import { PluginError } from "../../errors.ts";
import { redact } from "../../redaction.ts";
import { ServerClock } from "../../server-clock.ts";
import { SYSTEM_TIMERS, type Timers } from "../../timers.ts";
import type { Endpoint, EndpointRing } from "./endpoints.ts";
import { EtcdFailure, failureOfConnection, isAuthenticationOff, isGrpcOff, isSilence } from "./failure.ts";
import { GatewayTransport } from "./gateway.ts";
import type { GrpcTransport } from "./grpc.ts";
import { GrpcUpgrade } from "./grpc-upgrade.ts";
import { type Limits, RetryBudget } from "./retry-budget.ts";
import type { TlsFiles } from "./tls-files.ts";
import type { Call, Transaction, TransactionResponse, Transport } from "./transport.ts";

/** An attempt without a response, which may have taken effect. */
export class OutcomeUnknown extends Error {
  constructor(readonly seen: ReadonlyMap<Endpoint, EtcdFailure>) {
    super("the outcome is unknown");
  }
}

/** Whether an attempt that may have taken effect is retried, or reported to the caller. */
export type Repeat = "any failure" | "harmless failures";

/** Told once for an operation to which etcd has not responded for a while, and which is tried again. */
export type OnSilence = (url: string, leftMilliseconds: number) => void;

export interface ClientOptions {
  readonly limits: Limits;
  readonly onSilence?: OnSilence;
  readonly upgradesToGrpc?: true;
  /** Instead of the JSON gateway. */
  readonly transport?: Transport;
  readonly timers?: Timers;
  /** Milliseconds that never go back. */
  readonly elapsed?: () => number;
}

export class EtcdClient {
  private readonly closing = new AbortController();
  private readonly tokens = new Map<Endpoint, Promise<string | undefined>>();
  private readonly withoutGateway = new Set<Endpoint>();
  private readonly gateway: Transport;
  private grpc: Promise<GrpcTransport> | undefined;
  private readonly grpcUpgrade: GrpcUpgrade | undefined;
  readonly clock: ServerClock;

  constructor(
    readonly ring: EndpointRing,
    private readonly tls: TlsFiles,
    private readonly options: ClientOptions,
  ) {
    this.clock = new ServerClock(options.elapsed, options.elapsed);
    this.gateway = options.transport ?? new GatewayTransport(tls);
    if (options.upgradesToGrpc) this.grpcUpgrade = new GrpcUpgrade(() => this.openGrpc(), this.closed);
  }

  get timers(): Timers {
    return this.options.timers ?? SYSTEM_TIMERS;
  }

  /** Fires when the client is closed. */
  get closed(): AbortSignal {
    return this.closing.signal;
  }

  startRetries(stop: AbortSignal = this.closed): RetryBudget {
    return new RetryBudget(this.options.limits, stop, this.timers);
  }

  /**
   * Tries one endpoint after another until one responds. Throws `PluginError` when
   * the time for retries is over; with "harmless failures" also `OutcomeUnknown`, at
   * once, for an attempt that may have taken effect.
   */
  async transact(transaction: Transaction, repeat: Repeat, retries: RetryBudget): Promise<TransactionResponse> {
    const seen = new Map<Endpoint, EtcdFailure>();
    for (;;) {
      const endpoint = this.ring.current;
      try {
        return await this.attempt(endpoint, retries.nextAttempt(), (transport, call) =>
          transport.transact(call, transaction),
        );
      } catch (error) {
        const failure = failureOfConnection(error);
        // The final timeout says less than the failure before it.
        if (!seen.has(endpoint) || !isSilence(failure)) seen.set(endpoint, failure);
        if (isSilence(failure)) retries.noticeSilence((left) => this.options.onSilence?.(endpoint.url, left));
        const isRoundOver = this.ring.giveUp(endpoint) === "round over";
        if (failure.diagnosis.effect === "unknown" && repeat === "harmless failures") throw new OutcomeUnknown(seen);
        if (!this.mayRetry(seen, retries)) throw unavailable(seen);
        if (isRoundOver) await retries.pause();
      }
    }
  }

  /** One attempt at one endpoint, with the transport and token known to work there. */
  async attempt<Answer>(
    endpoint: Endpoint,
    signal: AbortSignal,
    ask: (transport: Transport, call: Call) => Promise<Answer>,
  ): Promise<Answer> {
    for (let mayRenewToken = true; ; ) {
      const transport = await this.transportFor(endpoint);
      try {
        const token = await this.tokenFor(endpoint, transport, signal);
        const answer = await ask(transport, { url: endpoint.url, token, signal, heard: this.heard });
        this.grpcUpgrade?.start(endpoint);
        return answer;
      } catch (error) {
        const failure = failureOfConnection(error);
        const { cure } = failure.diagnosis;
        if (isGrpcOff(failure)) this.grpcUpgrade?.disable(endpoint);
        if (cure === "grpc" && transport === this.gateway) this.withoutGateway.add(endpoint);
        else if (cure === "new token" && mayRenewToken) {
          this.tokens.delete(endpoint);
          mayRenewToken = false;
        } else throw error;
      }
    }
  }

  private readonly heard = (date: string | null | undefined): void => this.clock.hear(date);

  async close(): Promise<void> {
    this.closing.abort();
    (await this.grpc)?.close();
  }

  private async transportFor(endpoint: Endpoint): Promise<Transport> {
    if (this.withoutGateway.has(endpoint)) return this.openGrpc();
    // The gateway tells the server's time.
    if (this.clock.isOutdated) return this.gateway;
    return this.grpcUpgrade?.transportFor(endpoint) ?? this.gateway;
  }

  private openGrpc(): Promise<GrpcTransport> {
    this.grpc ??= import("./grpc.ts").then(({ GrpcTransport }) => new GrpcTransport(this.tls));
    return this.grpc;
  }

  private async tokenFor(endpoint: Endpoint, transport: Transport, signal: AbortSignal): Promise<string | undefined> {
    const { user, url } = endpoint;
    if (!user) return undefined;
    const known = this.tokens.get(endpoint);
    if (known) return known;
    const asked = transport.authenticate({ url, token: undefined, signal }, user).catch(withoutToken);
    this.tokens.set(endpoint, asked);
    try {
      const token = await asked;
      // Authentication may be enabled later, without any notice.
      if (token === undefined) this.tokens.delete(endpoint);
      return token;
    } catch (error) {
      this.tokens.delete(endpoint);
      throw beforeRequest(failureOfConnection(error));
    }
  }

  /** Another endpoint may work; once all have failed, only waiting may help, and not for every failure. */
  private mayRetry(seen: ReadonlyMap<Endpoint, EtcdFailure>, retries: RetryBudget): boolean {
    if (retries.areExhausted) return false;
    if (seen.size < this.ring.size) return true;
    const cures = new Set([...seen.values()].map(({ diagnosis }) => diagnosis.cure));
    if (cures.has("wait")) return retries.allow("wait");
    return cures.has("moment") && retries.allow("moment");
  }
}

/** If authentication is disabled, a user and password are ignored, as etcd's own clients do. */
function withoutToken(error: unknown): undefined {
  if (!isAuthenticationOff(error)) throw error;
}

/** If authentication fails, the request itself was not sent. */
function beforeRequest(failure: EtcdFailure): EtcdFailure {
  const { diagnosis, message, cause } = failure;
  const stage = diagnosis.stage === "request" ? "authenticate" : diagnosis.stage;
  return new EtcdFailure({ ...diagnosis, stage, effect: "none" }, message, cause);
}

/** The failure as the rest of the program knows it: endpoint, stage, reason, and what to check. */
export function unavailable(seen: ReadonlyMap<Endpoint, EtcdFailure>): PluginError {
  const [first, ...others] = [...seen].map(
    ([{ url }, { diagnosis, message }]) => `etcd at "${url}" failed at stage "${diagnosis.stage}": ${redact(message)}`,
  );
  const more = others.length > 0 ? ` (and ${others.length} more)` : "";
  const advice = new Set([...seen.values()].map(({ diagnosis }) => diagnosis.advice));
  const isTooLarge = [...seen.values()].some(({ diagnosis }) => diagnosis.isTooLarge);
  const kind = isTooLarge ? "record-too-large" : "datastore-unavailable";
  return new PluginError(kind, `Cannot use the datastore: ${first}${more}`, {
    details: [...others, ...advice].join("; "),
    cause: [...seen.values()].at(-1),
  });
}
