/** What the commands of an upgrade work with: the cluster, its datastore, the release of this tool, local files. */

import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { KubeClient } from "../../kube/api.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { openBackups } from "../../upgrade/engine/backups.ts";
import type { Facts } from "../../upgrade/engine/facts.ts";
import { LedgerStore, UPGRADE_NAME } from "../../upgrade/engine/ledger.ts";
import { lockText } from "../../upgrade/engine/lock-text.ts";
import type { Run, RunEvent } from "../../upgrade/engine/run.ts";
import {
  type HeldLease,
  LeaseTakenOver,
  leasedClient,
  leasedDatastore,
  requireHeld,
  withRunLease,
} from "../../upgrade/engine/run-lease.ts";
import type { Backups, Helm, PlanningSite } from "../../upgrade/engine/step.ts";
import { STEPS } from "../../upgrade/steps.ts";
import { withCluster } from "../cluster/access.ts";
import type { Given } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host, Terminal } from "../main/context.ts";
import { reportError } from "../main/report-error.ts";
import { datastoreSettingsOf } from "./datastore-settings.ts";
import { openHelm } from "./helm.ts";
import { DEFAULT_PLAN_FILE } from "./options.ts";
import { targetRelease } from "./target-release.ts";

export interface UpgradeSite extends Pick<PlanningSite, "objects" | "release" | "signal"> {
  readonly ledger: LedgerStore;
  openDatastore(kind: Facts["datastore"]): Promise<Datastore>;
  backups(run: string): Backups;
}

/** For commands that only read: every write is refused. */
export async function withUpgradeSite<T>(
  context: DatastoreAccess,
  given: Given,
  work: (site: UpgradeSite) => Promise<T>,
): Promise<T> {
  const lease: HeldLease = { signal: context.signal, ...NEVER_HELD };
  return withCluster(context, given, (client) => siteOf(context, given, { client, lease }, work));
}

async function refuseWrite(): Promise<never> {
  throw new PluginError("internal", "Cannot write: this command only reads");
}

const NEVER_HELD = { whenHeld: refuseWrite, isHeldWithin: refuseWrite, whileHeld: refuseWrite };

/** For commands that look at a run, and write nothing. */
export async function withReadingRun<T>(
  context: DatastoreAccess & Host & Clock,
  given: Given,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  const helm = openHelm(context, given);
  return withUpgradeSite(context, given, (site) =>
    work(runOf(context, site, { helm, lease: NEVER_HELD, report: () => {} })),
  );
}

/** For commands that write: one at a time. */
export async function withRun<T>(
  context: DatastoreAccess & Host & Clock,
  given: Given,
  { report, work }: { readonly report: (event: RunEvent) => void; readonly work: (run: Run) => Promise<T> },
): Promise<T> {
  const helm = openHelm(context, given);
  return withCluster(context, given, async (client) => {
    const means = {
      client,
      identity: `${await context.hostName()}/${context.uuid()}`,
      now: context.now,
      elapsed: () => context.clock.now(),
      wait: context.clock.wait,
      signal: context.signal,
      tell: (line: string) => context.stderr(`${line}\n`),
    };
    const run = withRunLease(means, (lease) =>
      siteOf(context, given, { client, lease }, (site) => {
        const more = { helm: helm && leasedHelm(helm, lease), lease, report };
        return work(runOf(context, site, more)).catch((failure: unknown) => {
          tellLock(context, site, lease.signal.reason);
          throw failure;
        });
      }),
    );
    return run.catch((failure: unknown) => {
      if (context.signal.aborted)
        context.stderr("Stopped. The same command continues; upgrade status shows how far it is.\n");
      throw failure;
    });
  });
}

/**
 * As far as this process knows: the API may be away. `end`: why the run has ended. If another has taken over, what is known is
 * out of date, since that one may have unlocked it.
 */
export function tellLock(
  context: Pick<Terminal, "stderr"> & Pick<Clock, "now">,
  { ledger: { current } }: { readonly ledger: Pick<LedgerStore, "current"> },
  end?: unknown,
): void {
  if (end instanceof LeaseTakenOver) return;
  const text = current === undefined ? "" : lockText(current, context.now());
  if (text !== "") context.stderr(`${text}\n`);
}

function runOf(
  context: Clock,
  site: UpgradeSite,
  { helm, ...more }: { readonly helm: Helm | undefined } & Pick<Run, "lease" | "report">,
): Run {
  const { objects, release, signal, ledger, openDatastore, backups } = site;
  const stepSite = {
    objects,
    release,
    signal,
    now: context.now,
    begunAt: context.now(),
    wait: stepWait(context, signal),
    helm,
  };
  return { steps: STEPS, site: stepSite, ledger, openDatastore, backups, ...more };
}

function stepWait({ clock }: Clock, signal: AbortSignal): (milliseconds: number) => Promise<void> {
  return async (milliseconds) => {
    await clock.wait(milliseconds, signal);
    signal.throwIfAborted();
  };
}

function leasedHelm(helm: Helm, lease: HeldLease): Helm {
  return async (args, stdin) => {
    await requireHeld(lease);
    return helm(args, stdin);
  };
}

interface Access {
  readonly client: Pick<KubeClient, "request">;
  readonly lease: HeldLease;
}

async function siteOf<T>(
  context: DatastoreAccess,
  given: Given,
  { client, lease }: Access,
  work: (site: UpgradeSite) => Promise<T>,
): Promise<T> {
  const objects = clusterObjects(leasedClient(client, lease), lease.signal);
  const copy = localCopy(context, given);
  let opening: Promise<Datastore> | undefined;
  const open = async (kind: Facts["datastore"]) =>
    context.openDatastore(await datastoreSettingsOf(kind, { objects, context, given }));
  try {
    return await work({
      objects,
      release: targetRelease(context.version),
      signal: lease.signal,
      ledger: await LedgerStore.open(objects, (text, run) => copy(run, "ledger", text)),
      async openDatastore(kind) {
        opening ??= open(kind);
        return leasedDatastore(await opening, lease);
      },
      backups: (run) => openBackups({ objects, run, copy: (name, text) => copy(run, name, text) }),
    });
  } finally {
    await opening?.then(
      (store) => store.close(),
      () => {},
    );
  }
}

/** Beside the file of the plan. A copy that cannot be written is reported: the cluster has the original. */
function localCopy(context: DatastoreAccess, given: Given): (run: string, name: string, text: string) => Promise<void> {
  const plan = given.values.get("plan") ?? DEFAULT_PLAN_FILE;
  const folder = plan.includes("/") ? plan.slice(0, plan.lastIndexOf("/") + 1) : "";
  return async (run, name, text) => {
    try {
      await context.replacePrivateFile(`${folder}${UPGRADE_NAME}-${run}/${name}.json`, text);
    } catch (failure) {
      reportError(context, failure);
    }
  };
}
