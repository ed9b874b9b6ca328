/**
 * The datastore of a cluster: etcd v3. A read of many keys is one transaction,
 * and so is a commit of many changes. A commit whose response was lost is never
 * blindly repeated: see `commit-outcome.ts`.
 */
import { PluginError } from "../../errors.ts";
import type { ServerTime } from "../../server-clock.ts";
import type { Timers } from "../../timers.ts";
import { commitEffect } from "../commit-effect.ts";
import {
  type Change,
  type Datastore,
  type DatastoreEvent,
  type Decide,
  HistoryGone,
  type OrderedChange,
  type Snapshot,
  type Transacted,
  type Wanted,
  type Written,
} from "../datastore.ts";
import { asOneTransaction } from "../ordered-changes.ts";
import { MOST_IN_ONE_REQUEST } from "../preconditions.ts";
import { transactOn } from "../transact.ts";
import type { CachingDatastore } from "./caching-datastore.ts";
import { type ClientOptions, EtcdClient, type OnSilence, OutcomeUnknown, unavailable } from "./client.ts";
import { findOwnCommit, guardsItself, type OwnCommit } from "./commit-outcome.ts";
import { EndpointRing, parseEndpoint } from "./endpoints.ts";
import { EtcdFailure, isCompacted, isFuture } from "./failure.ts";
import { LIMITS, type Limits, type RetryBudget } from "./retry-budget.ts";
import { readTlsFiles, type TlsFiles, type TlsPaths } from "./tls-files.ts";
import {
  commitTransaction,
  readTransaction,
  toSnapshot,
  toVerifiedCommit,
  toWritten,
  verifiedTransaction,
} from "./transactions.ts";
import type { Transaction, TransactionResponse, Transport } from "./transport.ts";
import type { AssumedRead, VerifiedCommit, VerifyingDatastore } from "./verified-commit.ts";
import { WATCH_LIMITS, type WatchLimits, watchPrefix } from "./watch.ts";

export interface EtcdSettings extends TlsPaths {
  readonly source:
    | { readonly kind: "endpoints"; readonly endpoints: readonly string[] }
    | { readonly kind: "discovery"; readonly domain: string };
}

export interface EtcdOptions {
  /** Spreads the processes of a cluster over its members: a number from 0 up to 1. */
  readonly random?: () => number;
  readonly limits?: Partial<Limits>;
  /** For a program that a person waits for. */
  readonly onSilence?: OnSilence;
  readonly watchLimits?: Partial<WatchLimits>;
  /** For a long-running process: caches what a call read and wrote, so that the next call can commit without reading first. */
  readonly cachesReads?: true;
  /** For a long-running process: requests use gRPC once it is connected, which is faster. */
  readonly upgradesToGrpc?: true;
  /** For a simulation, which has no real time. */
  readonly timers?: Timers;
  /** The same: milliseconds that never go back. */
  readonly elapsed?: () => number;
}

/** Reads the certificates and finds the endpoints. Starts to connect, but sends no request before the first read or commit. */
export async function openEtcd(settings: EtcdSettings, options: EtcdOptions = {}): Promise<Datastore> {
  return options.cachesReads ? openCachingEtcd(settings, options) : (await connect(settings, options)).store;
}

export async function openCachingEtcd(settings: EtcdSettings, options: EtcdOptions = {}): Promise<CachingDatastore> {
  const [{ cachingDatastore }, { store, ring }] = await Promise.all([
    import("./caching-datastore.ts"),
    connect(settings, options),
  ]);
  return cachingDatastore(store, () => ring.failures);
}

/** On a transport of the caller's, without files and addresses. `failures`: see `cachingDatastore()`. */
export function openEtcdThrough(
  transport: Transport,
  options: EtcdOptions = {},
): { readonly store: VerifyingDatastore; readonly failures: () => number } {
  const ring = new EndpointRing([{ url: "transport", user: undefined }]);
  const store = storeOf(ring, {}, { ...options, transport });
  return { store, failures: () => ring.failures };
}

/** For the tests of `commitIfUnchanged()`, which only this store has. */
export async function openVerifyingEtcd(
  settings: EtcdSettings,
  options: EtcdOptions = {},
): Promise<VerifyingDatastore> {
  return (await connect(settings, options)).store;
}

async function connect(settings: EtcdSettings, options: EtcdOptions) {
  const { random = Math.random } = options;
  const [tls, ring] = await Promise.all([readTlsFiles(settings), findEndpoints(settings.source, random)]);
  connectEarly(ring.current.url);
  return { ring, store: storeOf(ring, tls, options) };
}

function storeOf(
  ring: EndpointRing,
  tls: TlsFiles,
  { limits, watchLimits, ...options }: EtcdOptions & Pick<ClientOptions, "transport">,
): VerifyingDatastore {
  const client = new EtcdClient(ring, tls, { ...options, limits: { ...LIMITS, ...limits } });
  return new EtcdDatastore(client, { ...WATCH_LIMITS, ...watchLimits });
}

/** Connects while the process prepares its first request, which uses the connection; a failure is reported then. */
function connectEarly(url: string): void {
  // With TLS, a connection is only reused by requests with the same certificates, which cannot be passed here.
  if (url.startsWith("http:")) fetch.preconnect(url);
}

async function findEndpoints(source: EtcdSettings["source"], random: () => number): Promise<EndpointRing> {
  if (source.kind === "endpoints") {
    const endpoints = source.endpoints.map(parseEndpoint);
    return new EndpointRing(endpoints, Math.floor(random() * endpoints.length));
  }
  const { discoverEndpoints } = await import("./discovery.ts");
  return new EndpointRing(await discoverEndpoints(source.domain, random));
}

/** A commit as an etcd transaction, and how to interpret the response. */
interface CommitRequest<Answer> {
  readonly changes: readonly Change[];
  readonly transaction: Transaction;
  readonly interpret: (answer: TransactionResponse) => Answer;
}

class EtcdDatastore implements VerifyingDatastore {
  readonly atomicity = "all changes";

  constructor(
    private readonly client: EtcdClient,
    private readonly watchLimits: WatchLimits,
  ) {}

  async read(wanted: readonly Wanted[], at?: string): Promise<Snapshot> {
    const retries = this.client.startRetries();
    return this.readWithin(retries, wanted, at).finally(() => retries.end());
  }

  async commit(given: readonly OrderedChange[]): Promise<Written> {
    const changes = asOneTransaction(given);
    const interpret = (answer: TransactionResponse) => requireReason(toWritten(changes, answer));
    const request = { changes, transaction: commitTransaction(changes), interpret };
    return commitEffect(changes, () => this.commitWithKnownOutcome(request));
  }

  transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    return transactOn(this, wanted, decide);
  }

  async commitIfUnchanged(assumed: AssumedRead, given: readonly OrderedChange[]): Promise<VerifiedCommit> {
    const changes = asOneTransaction(given);
    const { wanted } = assumed;
    const transaction = verifiedTransaction(assumed, changes);
    const read = async (): Promise<VerifiedCommit> => ({ ok: false, snapshot: await this.read(wanted) });
    if (!transaction) return read();
    try {
      const request = {
        changes,
        transaction,
        interpret: (answer: TransactionResponse) => toVerifiedCommit(wanted, answer),
      };
      return await commitEffect(changes, () => this.commitWithKnownOutcome(request));
    } catch (error) {
      // With the current records there may be nothing to write: then a full etcd must not make the call fail.
      if (isRefusal(error)) return read();
      throw error;
    }
  }

  clock(): ServerTime {
    return this.client.clock.now();
  }

  watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<DatastoreEvent> {
    const stop = AbortSignal.any([signal, this.client.closed]);
    return watchPrefix(this.client, { prefix, from, stop, limits: this.watchLimits });
  }

  async close(): Promise<void> {
    await this.client.close();
  }

  private async readWithin(retries: RetryBudget, wanted: readonly Wanted[], at: string | undefined): Promise<Snapshot> {
    const readPart = async (part: readonly Wanted[], revision?: string) => {
      const transaction = readTransaction(part, revision);
      const answer = await this.client.transact(transaction, "any failure", retries).catch((error) => {
        throw revision !== undefined && isOutOfHistory(error) ? new HistoryGone(revision, error) : error;
      });
      return toSnapshot(part, revision === undefined ? answer : { ...answer, revision });
    };

    const { revision, answers } = await readPart(wanted.slice(0, MOST_IN_ONE_REQUEST), at);
    const more: Snapshot[] = [];
    for (let start = MOST_IN_ONE_REQUEST; start < wanted.length; start += MOST_IN_ONE_REQUEST) {
      more.push(await readPart(wanted.slice(start, start + MOST_IN_ONE_REQUEST), revision));
    }
    return { revision, answers: [...answers, ...more.flatMap((part) => part.answers)] };
  }

  /** If the response is lost, finds out whether the commit took effect. */
  private async commitWithKnownOutcome<Answer extends { readonly ok: boolean }>(
    request: CommitRequest<Answer>,
  ): Promise<Answer | OwnCommit> {
    const retries = this.client.startRetries();
    return this.commitWithin(retries, request).finally(() => retries.end());
  }

  private async commitWithin<Answer extends { readonly ok: boolean }>(
    retries: RetryBudget,
    request: CommitRequest<Answer>,
  ): Promise<Answer | OwnCommit> {
    try {
      return await this.commitOnce(request, retries);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
    }
    try {
      return await this.commitAgain(request, retries);
    } catch (error) {
      if (!(error instanceof PluginError)) throw error;
      const message = `${error.message}; whether the commit took effect is not known`;
      throw new PluginError(error.kind, message, { details: error.details, cause: error });
    }
  }

  /** Throws `OutcomeUnknown` when the outcome is unknown. */
  private async commitOnce<Answer>(request: CommitRequest<Answer>, retries: RetryBudget): Promise<Answer> {
    const writes = request.changes.some(({ kind }) => kind !== "expect");
    const repeat = writes ? "harmless failures" : "any failure";
    return request.interpret(await this.client.transact(request.transaction, repeat, retries));
  }

  /** After an attempt of unknown outcome: a retry is safe if our own writes make its comparisons fail. */
  private async commitAgain<Answer extends { readonly ok: boolean }>(
    request: CommitRequest<Answer>,
    retries: RetryBudget,
  ): Promise<Answer | OwnCommit> {
    const { changes } = request;
    for (;;) {
      try {
        if (!guardsItself(changes)) {
          const own = await findOwnCommit(this.client, changes, retries);
          if (own) return own;
        }
        const answer = await this.commitOnce(request, retries);
        return answer.ok ? answer : ((await findOwnCommit(this.client, changes, retries)) ?? answer);
      } catch (error) {
        if (!(error instanceof OutcomeUnknown)) throw error;
        if (retries.areExhausted) throw unavailable(error.seen);
        await retries.pause();
      }
    }
  }
}

/** Compacted in the meantime, or not reached yet: the cluster was restored from an older copy. */
function isOutOfHistory(error: unknown): boolean {
  const cause = error instanceof PluginError ? error.cause : undefined;
  return isCompacted(cause) || isFuture(cause);
}

/** etcd refused the request, and nothing was written. */
function isRefusal(error: unknown): boolean {
  const cause = error instanceof PluginError ? error.cause : undefined;
  if (!(cause instanceof EtcdFailure)) return false;
  const { stage, effect, cure } = cause.diagnosis;
  return stage === "request" && effect === "none" && cure === "repair";
}

function requireReason(written: Written | "contradiction"): Written {
  if (written !== "contradiction") return written;
  throw new PluginError("internal", "Cannot commit: etcd refused without a reason");
}
