/**
 * The datastore of a cluster: etcd v3. A read of many and a commit of many are
 * one transaction each. A commit whose answer was lost is never made again
 * blindly: see `own-commit.ts`.
 */
import { PluginError } from "../../errors.ts";
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
import { EtcdClient, OutcomeUnknown, unavailable } from "./client.ts";
import { EndpointRing, parseEndpoint } from "./endpoints.ts";
import { EtcdFailure, isCompacted, isFuture } from "./failure.ts";
import { findOwnCommit, guardsItself, type OwnCommit } from "./own-commit.ts";
import { LIMITS, type Limits, type Patience } from "./patience.ts";
import type { Guess, Proven, ProvingDatastore } from "./proving.ts";
import type { RememberingDatastore } from "./remembering.ts";
import { readTlsFiles, type TlsPaths } from "./tls-files.ts";
import {
  commitTransaction,
  provingTransaction,
  readTransaction,
  toProven,
  toSnapshot,
  toWritten,
} from "./transactions.ts";
import type { Transaction, TransactionAnswer } from "./transport.ts";
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
  readonly watchLimits?: Partial<WatchLimits>;
  /** For a process that stays: what one call saw and wrote lets the next one guess. */
  readonly remembers?: true;
  /** For a process that stays: requests go by gRPC once it is connected, which is quicker. */
  readonly grpcTakesOver?: true;
}

/** Reads the certificates and finds the endpoints. A connection is begun; nothing is asked before the first read or commit. */
export async function openEtcd(settings: EtcdSettings, options: EtcdOptions = {}): Promise<Datastore> {
  return options.remembers ? openRememberingEtcd(settings, options) : (await connect(settings, options)).store;
}

export async function openRememberingEtcd(
  settings: EtcdSettings,
  options: EtcdOptions = {},
): Promise<RememberingDatastore> {
  const [{ rememberingStore }, { store, ring }] = await Promise.all([
    import("./remembering.ts"),
    connect(settings, options),
  ]);
  return rememberingStore(store, () => ring.failures);
}

/** For the tests of what only this store can do. */
export async function openProvingEtcd(settings: EtcdSettings, options: EtcdOptions = {}): Promise<ProvingDatastore> {
  return (await connect(settings, options)).store;
}

async function connect(settings: EtcdSettings, options: EtcdOptions) {
  const { random = Math.random, limits = {}, watchLimits = {} } = options;
  const [tls, ring] = await Promise.all([readTlsFiles(settings), findEndpoints(settings.source, random)]);
  connectEarly(ring.current.url);
  const client = new EtcdClient(ring, tls, { ...options, limits: { ...LIMITS, ...limits } });
  return { ring, store: new EtcdDatastore(client, { ...WATCH_LIMITS, ...watchLimits }) };
}

/** While the process does what comes before its first request. The connection waits for it; a failure shows there. */
function connectEarly(url: string): void {
  // With TLS a connection is only used again by requests with the same certificates, which cannot be told here.
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

/** A commit as etcd is asked for it, and what its answer means. */
interface Asked<Answer> {
  readonly changes: readonly Change[];
  readonly transaction: Transaction;
  readonly understand: (answer: TransactionAnswer) => Answer;
}

class EtcdDatastore implements ProvingDatastore {
  readonly atomicity = "all changes";

  constructor(
    private readonly client: EtcdClient,
    private readonly watchLimits: WatchLimits,
  ) {}

  async read(wanted: readonly Wanted[], at?: string): Promise<Snapshot> {
    const patience = this.client.startPatience();
    const readPart = async (part: readonly Wanted[], revision?: string) => {
      const transaction = readTransaction(part, revision);
      const answer = await this.client.transact(transaction, "any failure", patience).catch((error) => {
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

  async commit(given: readonly OrderedChange[]): Promise<Written> {
    const changes = asOneTransaction(given);
    const understand = (answer: TransactionAnswer) => requireReason(toWritten(changes, answer));
    const asked = { changes, transaction: commitTransaction(changes), understand };
    return commitEffect(changes, () => this.commitSurely(asked));
  }

  transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    return transactOn(this, wanted, decide);
  }

  async commitIfUnchanged(guess: Guess, given: readonly OrderedChange[]): Promise<Proven> {
    const changes = asOneTransaction(given);
    const { wanted } = guess;
    const transaction = provingTransaction(guess, changes);
    const read = async (): Promise<Proven> => ({ ok: false, snapshot: await this.read(wanted) });
    if (!transaction) return read();
    try {
      const asked = { changes, transaction, understand: (answer: TransactionAnswer) => toProven(wanted, answer) };
      return await commitEffect(changes, () => this.commitSurely(asked));
    } catch (error) {
      // Perhaps there is nothing to write: that is not to fail for want of space.
      if (isRefusal(error)) return read();
      throw error;
    }
  }

  watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<DatastoreEvent> {
    const stop = AbortSignal.any([signal, this.client.closed]);
    return watchPrefix(this.client, { prefix, from, stop, limits: this.watchLimits });
  }

  async close(): Promise<void> {
    await this.client.close();
  }

  /** Finds out what became of it when the answer is lost. */
  private async commitSurely<Answer extends { readonly ok: boolean }>(
    asked: Asked<Answer>,
  ): Promise<Answer | OwnCommit> {
    const patience = this.client.startPatience();
    try {
      return await this.commitOnce(asked, patience);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
    }
    try {
      return await this.commitAgain(asked, patience);
    } catch (error) {
      if (!(error instanceof PluginError)) throw error;
      const message = `${error.message}; whether the commit took effect is not known`;
      throw new PluginError(error.kind, message, { details: error.details, cause: error });
    }
  }

  /** Throws `OutcomeUnknown` when the outcome is unknown. */
  private async commitOnce<Answer>(asked: Asked<Answer>, patience: Patience): Promise<Answer> {
    const writes = asked.changes.some(({ kind }) => kind !== "expect");
    const repeat = writes ? "harmless failures" : "any failure";
    return asked.understand(await this.client.transact(asked.transaction, repeat, patience));
  }

  /** After an attempt of unknown outcome: guards that our own writes break make trying again safe. */
  private async commitAgain<Answer extends { readonly ok: boolean }>(
    asked: Asked<Answer>,
    patience: Patience,
  ): Promise<Answer | OwnCommit> {
    const { changes } = asked;
    for (;;) {
      try {
        if (!guardsItself(changes)) {
          const own = await findOwnCommit(this.client, changes, patience);
          if (own) return own;
        }
        const answer = await this.commitOnce(asked, patience);
        return answer.ok ? answer : ((await findOwnCommit(this.client, changes, patience)) ?? answer);
      } catch (error) {
        if (!(error instanceof OutcomeUnknown)) throw error;
        if (patience.isOver) throw unavailable(error.seen);
        await patience.pause();
      }
    }
  }
}

/** Compacted meanwhile, or not reached yet: the cluster was restored from an older copy. */
function isOutOfHistory(error: unknown): boolean {
  const cause = error instanceof PluginError ? error.cause : undefined;
  return isCompacted(cause) || isFuture(cause);
}

/** etcd was there and would not do it, and nothing of it was done. */
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
