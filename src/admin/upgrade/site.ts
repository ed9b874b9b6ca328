/** What the commands of an upgrade work with: the cluster, its datastore, the release of this tool, local files. */
import type { Datastore } from "../../datastore/datastore.ts";
import type { KubeClient } from "../../kube/api.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { openBackups } from "../../upgrade/backups.ts";
import { LedgerStore, UPGRADE_NAME } from "../../upgrade/ledger.ts";
import type { Run, RunEvent } from "../../upgrade/run.ts";
import { type HeldLease, leasedClient, leasedDatastore, withRunLease } from "../../upgrade/run-lease.ts";
import type { Backups, Helm, PlanningSite } from "../../upgrade/step.ts";
import { STEPS } from "../../upgrade/steps.ts";
import { withCluster } from "../cluster/access.ts";
import type { Context, Given } from "../command.ts";
import { reportError } from "../report-error.ts";
import { settingsOf } from "../status/datastore-of-cluster.ts";
import { openHelm } from "./helm.ts";
import { DEFAULT_PLAN_FILE } from "./options.ts";
import { targetRelease } from "./target-release.ts";

export interface UpgradeSite extends Omit<PlanningSite, "facts" | "options"> {
  readonly ledger: LedgerStore;
  backups(run: string): Backups;
}

/** For commands that only read. */
export async function withUpgradeSite<T>(
  context: Context,
  given: Given,
  work: (site: UpgradeSite) => Promise<T>,
): Promise<T> {
  return withCluster(context, given, (client) => siteOf(context, given, { client, signal: context.signal }, work));
}

/** For commands that look at a run, and write nothing. */
export async function withReadingRun<T>(context: Context, given: Given, work: (run: Run) => Promise<T>): Promise<T> {
  return withUpgradeSite(context, given, ({ ledger, backups, ...planning }) => {
    const { now, signal } = context;
    const site = { ...planning, now, wait: stepWait(signal), helm: openHelm(context, given) };
    return work({ steps: STEPS, site, ledger, backups, report: () => {} });
  });
}

/** For commands that write: one at a time. */
export async function withRun<T>(
  context: Context,
  given: Given,
  { report, work }: { readonly report: (event: RunEvent) => void; readonly work: (run: Run) => Promise<T> },
): Promise<T> {
  const helm = openHelm(context, given);
  return withCluster(context, given, async (client) =>
    withRunLease(
      {
        client,
        identity: `${await context.hostName()}/${context.uuid()}`,
        now: context.now,
        elapsed: () => performance.now(),
        wait,
        signal: context.signal,
        tell: (line) => context.stderr(`${line}\n`),
      },
      (lease) =>
        siteOf(context, given, { client: leasedClient(client, lease), signal: lease.signal, lease }, (site) => {
          const { ledger, backups, ...planning } = site;
          const { now } = context;
          const stepSite = { ...planning, now, wait: stepWait(lease.signal), helm: helm && leasedHelm(helm, lease) };
          return work({ steps: STEPS, site: stepSite, ledger, backups, report });
        }),
    ),
  );
}

function stepWait(signal: AbortSignal): (milliseconds: number) => Promise<void> {
  return async (milliseconds) => {
    await wait(milliseconds, signal);
    signal.throwIfAborted();
  };
}

function leasedHelm(helm: Helm, lease: HeldLease): Helm {
  return async (args, stdin) => {
    lease.requireHeld();
    return helm(args, stdin);
  };
}

interface Access {
  readonly client: Pick<KubeClient, "request">;
  readonly signal: AbortSignal;
  readonly lease?: HeldLease;
}

async function siteOf<T>(
  context: Context,
  given: Given,
  { client, signal, lease }: Access,
  work: (site: UpgradeSite) => Promise<T>,
): Promise<T> {
  const objects = clusterObjects(client, signal);
  let opening: Promise<Datastore> | undefined;
  const open = async () => {
    const store = await context.openDatastore(await settingsOf(objects, context, given));
    return lease === undefined ? store : leasedDatastore(store, lease);
  };
  const copy = localCopy(context, given);
  const ledger = await LedgerStore.open(objects, (text) => copy(`${UPGRADE_NAME}-ledger.json`, text));
  try {
    return await work({
      objects,
      release: targetRelease(context.version),
      openDatastore: () => (opening ??= open()),
      signal,
      ledger,
      backups: (run) =>
        openBackups({ objects, run, copy: (name, text) => copy(`${UPGRADE_NAME}-${run}/${name}.json`, text) }),
    });
  } finally {
    await opening?.then(
      (store) => store.close(),
      () => {},
    );
  }
}

/** Beside the file of the plan. A copy that cannot be written is reported: the cluster has the original. */
function localCopy(context: Context, given: Given): (name: string, text: string) => Promise<void> {
  const plan = given.values.get("plan") ?? DEFAULT_PLAN_FILE;
  const folder = plan.includes("/") ? plan.slice(0, plan.lastIndexOf("/") + 1) : "";
  return async (name, text) => {
    try {
      await context.replacePrivateFile(`${folder}${name}`, text);
    } catch (failure) {
      reportError(context, failure);
    }
  };
}

/** Ends early when the signal fires. */
async function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => resolve();
  const timer = setTimeout(end, milliseconds);
  signal.addEventListener("abort", end, { once: true });
  await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", end);
}
