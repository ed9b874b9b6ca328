/**
 * The release of the API server. What is followed and rendered depends on it (older-servers.ts), and it changes while the
 * operator runs: the orchestrator is upgraded, or rolled back.
 */
import { Backoff } from "../datastore/replica/clock.ts";
import { PluginError } from "../errors.ts";
import type { KubeClient } from "../kube/api.ts";
import { clusterObjects } from "../kube/objects.ts";
import { isForbidden } from "../kube/require-ok.ts";
import { readServerVersion } from "../kube/server-version.ts";
import { listFollower, policiesOf } from "../release/admission/policies.ts";
import { notesForServer, servesPolicies } from "../release/older-servers.ts";

export interface ServerReleaseOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly signal: AbortSignal;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
  readonly elapsed: () => number;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

const RETRIES = { firstPauseMilliseconds: 500, longestPauseMilliseconds: 30_000 };
const PERIOD_MILLISECONDS = 60_000;
const UNKNOWN = "unknown";

export class ServerRelease {
  private known = UNKNOWN;
  private askedAt = 0;

  constructor(private readonly options: ServerReleaseOptions) {}

  get version(): string {
    return this.known;
  }

  /** Asks until there is a response. `undefined` if the signal is aborted before. */
  async first(): Promise<string | undefined> {
    const { signal, wait, random, log, elapsed } = this.options;
    const backoff = new Backoff(RETRIES, random);
    while (!signal.aborted) {
      try {
        this.known = await this.read();
        this.askedAt = elapsed();
        this.logLeftOut();
        return this.known;
      } catch (failure) {
        if (signal.aborted) return undefined;
        const pause = backoff.next(0);
        log(`${reasonOf(failure)}; trying again in ${Math.round(pause)} ms`, "WARNING");
        await wait(pause, signal);
      }
    }
    return undefined;
  }

  /** Asks again once a minute. Throws if kinds are served now that are not followed, or the other way round. */
  async refresh(): Promise<void> {
    const { log, elapsed, signal } = this.options;
    if (elapsed() - this.askedAt < PERIOD_MILLISECONDS) return;
    this.askedAt = elapsed();
    const before = this.known;
    const now = await this.read().catch((failure) => {
      if (!signal.aborted) log(reasonOf(failure), "WARNING");
      return before;
    });
    if (now === before) return;
    if (servesPolicies(now) !== servesPolicies(before)) {
      throw new ReleaseChanged(`The API server has ${now} instead of ${before}: the operator must start again`);
    }
    this.known = now;
    log(`The API server has ${now} instead of ${before}`, "INFO");
    this.logLeftOut();
  }

  /** A role without the permission must not stop the operator: then the server counts as one of today. */
  private async read(): Promise<string> {
    const { client, signal, log } = this.options;
    try {
      return await readServerVersion(clusterObjects(client, signal));
    } catch (failure) {
      if (!isForbidden(failure)) throw failure;
      if (this.askedAt === 0) log(`${failure.message}; the API server counts as one that serves everything`, "WARNING");
      return UNKNOWN;
    }
  }

  private logLeftOut(): void {
    const policies = [...listFollower(), ...policiesOf("nodeAccounts")];
    for (const note of notesForServer(this.known, policies)) this.options.log(note, "WARNING");
  }
}

/** Ends the process; its Deployment starts it again. */
export class ReleaseChanged extends PluginError {
  constructor(message: string) {
    super("try-again-later", message);
  }
}

function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
