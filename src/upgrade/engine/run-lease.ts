/**
 * One run at a time: the Lease `vendor-upgrade` of the cluster.
 *
 * A Lease that is renewed while we look on belongs to a run that is going on. One that is not renewed belongs to a process
 * that was killed; it is taken over when it has expired. A run that cannot renew its Lease in time stops writing before
 * another may begin. It goes on when it has renewed it: the datastore may be locked, and an API server that is away for a
 * while must not leave it so. It ends if another run has had the Lease meanwhile.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import { transactOn } from "../../datastore/transact.ts";
import { PluginError } from "../../errors.ts";
import type { KubeClient } from "../../kube/api.ts";
import { Elector } from "../../kube/election/elector.ts";
import { KubeFailure } from "../../kube/failure.ts";
import { quoted } from "../../quote.ts";
import { UPGRADE_NAME, UPGRADE_NAMESPACE } from "./ledger.ts";
import { durationText } from "./wording.ts";

export interface LeaseOptions {
  readonly client: Pick<KubeClient, "request">;
  /** Of this process; unique, and tells a person who it is. */
  readonly identity: string;
  readonly now: () => Date;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
  /** One line for the user. */
  readonly tell: (line: string) => void;
}

export interface HeldLease {
  /** Fires when the user stops the run, and when the Lease is lost for good. */
  readonly signal: AbortSignal;
  /**
   * Resolves when something may be written: at once if it is "held", or when it is renewed, "again". Rejects if the run is
   * over: nothing may be written any more.
   */
  whenHeld(): Promise<"held" | "again">;
  /** Whether it is so within this time. */
  isHeldWithin(milliseconds: number): Promise<boolean>;
  /** A write. Its signal fires when another run may acquire the Lease soon: nothing may be sent from then on. */
  whileHeld<T>(write: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

export async function withRunLease<T>(options: LeaseOptions, work: (lease: HeldLease) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const lost = new AbortController();
  let hasBegun = false;
  let problem = "";
  let notOwnBefore = 0;
  let heldAt = options.elapsed();
  const elector = new Elector({
    ...options,
    namespace: UPGRADE_NAMESPACE,
    name: UPGRADE_NAME,
    log(message, level) {
      if (level === "WARNING") problem = message;
      if (level === "WARNING" || hasBegun) options.tell(message);
    },
    // Another run has had it if somebody else's name is in it, or none.
    mayAcquire: () => !hasBegun,
    onAttempt: () => hasBegun && look(),
  });
  let toldAt = heldAt;
  const look = () => {
    if (elector.timesNotOwn !== notOwnBefore) lost.abort(new LeaseTakenOver(elector.holder));
    else if (elector.isLeading()) toldAt = heldAt = options.elapsed();
    else if (options.elapsed() - heldAt >= LIMITS.lostMilliseconds) lost.abort(lostLease());
    else if (options.elapsed() - toldAt >= LIMITS.tellMilliseconds) {
      toldAt = options.elapsed();
      options.tell(waitingText((toldAt - heldAt) / 1_000, problem));
    }
  };
  const renewing = elector.run(stop.signal);
  try {
    await acquire(elector, options, () => problem);
    notOwnBefore = elector.timesNotOwn;
    hasBegun = true;
    const signal = AbortSignal.any([options.signal, lost.signal]);
    return await work({
      signal,
      async whenHeld() {
        const state = elector.isLeading() ? "held" : "again";
        await elector.whenLeading(signal);
        look();
        signal.throwIfAborted();
        return state;
      },
      async isHeldWithin(milliseconds) {
        const end = new AbortController();
        const limit = options.wait(milliseconds, end.signal);
        await Promise.race([limit, elector.whenLeading(AbortSignal.any([signal, end.signal]))]);
        end.abort();
        return elector.isLeading() && !signal.aborted;
      },
      async whileHeld(write) {
        const [over, done] = [new AbortController(), new AbortController()];
        const watch = async () => {
          while (elector.isLeading() && !done.signal.aborted) await options.wait(elector.remaining(), done.signal);
          if (!done.signal.aborted) over.abort(lostMeanwhile());
        };
        void watch();
        try {
          return await write(AbortSignal.any([signal, over.signal]));
        } catch (failure) {
          signal.throwIfAborted();
          over.signal.throwIfAborted();
          throw failure;
        } finally {
          done.abort();
        }
      },
    });
  } finally {
    stop.abort();
    await renewing;
  }
}

const POLL_MILLISECONDS = 100;
/**
 * To begin: without a response at all, and in any case, since a Lease that is not renewed expires sooner. `lost`: until a run
 * that has begun gives up. `tell`: until it says again that it waits.
 */
const LIMITS = {
  silentMilliseconds: 10_000,
  totalMilliseconds: 60_000,
  lostMilliseconds: 3_600_000,
  tellMilliseconds: 60_000,
};

/** `problem`: the last one of the requests for the Lease. */
async function acquire(elector: Elector, options: LeaseOptions, problem: () => string): Promise<void> {
  const { wait, elapsed, signal, tell } = options;
  const begun = elapsed();
  let first: { readonly holder: string; readonly renewTime: string } | undefined;
  while (!elector.isLeading()) {
    signal.throwIfAborted();
    const { holder, renewTime } = elector;
    if (first === undefined && holder !== "") {
      first = { holder, renewTime };
      tell(`Waiting for the Lease of ${quoted(holder)}: another upgrade is running, or was killed a moment ago`);
    }
    if (first !== undefined && holder !== "" && (holder !== first.holder || renewTime !== first.renewTime)) {
      throw heldByOther(holder);
    }
    const limit = holder === "" ? LIMITS.silentMilliseconds : LIMITS.totalMilliseconds;
    if (elapsed() - begun >= limit) throw notAcquired(problem());
    await wait(POLL_MILLISECONDS, signal);
  }
}

function heldByOther(holder: string): PluginError {
  return new PluginError("resource-in-use", `Cannot begin: ${quoted(holder)} is upgrading this cluster now`, {
    details: "wait until it has ended; upgrade status shows how far it is",
  });
}

function notAcquired(problem: string): PluginError {
  const reason = problem === "" ? "the API does not respond" : problem;
  return new PluginError("api-unavailable", `Cannot begin: the Lease of the upgrade cannot be acquired: ${reason}`, {
    details: "nothing was written; check the address of the API and the permissions, and run the same command again",
  });
}

export class LeaseTakenOver extends PluginError {
  /** `holder`: empty if it was given back since. */
  constructor(holder: string) {
    const by = holder === "" ? "another run has" : `${quoted(holder)} has`;
    super("resource-in-use", `Cannot go on: ${by} taken over the Lease of the upgrade`, {
      details: "nothing was written since; upgrade status shows how far it is",
    });
  }
}

function waitingText(seconds: number, problem: string): string {
  const reason = problem === "" ? "" : ` (${problem})`;
  return `Nothing is written for ${durationText(seconds)}, until the Lease of the upgrade is renewed${reason}. If the datastore is locked, it stays so: upgrade status tells it`;
}

function lostLease(): PluginError {
  return new PluginError("api-unavailable", "Cannot go on: the Lease of the upgrade could not be renewed for an hour", {
    details: "nothing was written since; run the same command again to continue",
  });
}

/**
 * Before each write. While the Lease is lost it waits; what was read before that may be out of date by then, so the step has
 * to look again: it throws a temporary failure.
 */
export async function requireHeld(lease: Pick<HeldLease, "whenHeld">): Promise<void> {
  if ((await lease.whenHeld()) === "held") return;
  throw withheld("none", "Not written: the Lease of the upgrade was lost for a while, and is renewed");
}

function lostMeanwhile(): PluginError {
  return withheld("unknown", "Perhaps not written: the Lease of the upgrade was lost before the API responded");
}

function withheld(effect: "none" | "unknown", message: string): PluginError {
  const cause = new KubeFailure({ stage: "request", effect, cure: "moment", advice: "" }, message);
  return new PluginError("api-unavailable", message, { details: "run the same command again", cause });
}

function anyOf(one: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other === undefined ? one : AbortSignal.any([one, other]);
}

/** Refuses every write, but not dry runs, unless the Lease is held; one that is not answered while it is, is not repeated. */
export function leasedClient(client: Pick<KubeClient, "request">, lease: HeldLease): Pick<KubeClient, "request"> {
  return {
    async request(request) {
      if (request.method === "GET" || request.query?.["dryRun"] !== undefined) return client.request(request);
      await requireHeld(lease);
      return lease.whileHeld((signal) => client.request({ ...request, signal: anyOf(signal, request.signal) }));
    },
  };
}

/** Does not close it: all steps share it. */
export function leasedDatastore(store: Datastore, lease: HeldLease): Datastore {
  const leased: Datastore = {
    atomicity: store.atomicity,
    isOrchestratorApi: store.isOrchestratorApi,
    read: (wanted, at) => store.read(wanted, at),
    async commit(changes) {
      await requireHeld(lease);
      return store.commit(changes);
    },
    transact: (wanted, decide) => transactOn(leased, wanted, decide),
    clock: () => store.clock?.(),
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close: async () => {},
  };
  return leased;
}
