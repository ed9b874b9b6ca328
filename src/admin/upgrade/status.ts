import { leaseIn } from "../../kube/election/lease.ts";
import { type ClusterObjects, clusterObjects } from "../../kube/objects.ts";
import { adviceOf, type Ledger, LedgerStore, UPGRADE_NAME, UPGRADE_NAMESPACE } from "../../upgrade/engine/ledger.ts";
import { leftNodesText, lockedByUpgrade, lockText } from "../../upgrade/engine/lock-text.ts";
import { withCluster } from "../cluster/access.ts";
import { EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Clock, ClusterAccess } from "../main/context.ts";
import { type Page, stdoutPage } from "../terminal/page.ts";
import { formatTable } from "../terminal/table.ts";

export async function run(context: ClusterAccess & Clock, given: Given): Promise<ExitCode> {
  const { ledger, holder } = await withCluster(context, given, (client) =>
    readUpgrade(clusterObjects(client, context.signal), context.now()),
  );
  if (wantsJson(given)) {
    const { notes: _, ...shown } = ledger ?? { phase: "none", notes: {} };
    const locked = ledger && lockedByUpgrade(ledger);
    const more = { ...(locked && { lockedSince: locked.since }), ...(holder && { holder }) };
    context.stdout(`${JSON.stringify({ ...shown, ...more }, undefined, 2)}\n`);
  } else if (ledger === undefined) context.stdout("There is no upgrade in this cluster.\n");
  else {
    const lines = [lockText(ledger, context.now()), leftNodesText(ledger)].filter((line) => line !== "");
    context.stdout(statusText(ledger, { holder, lines, page: stdoutPage(context) }));
  }
  return EXIT_OK;
}

export interface UpgradeFacts {
  /** Absent: there was no upgrade in this cluster. */
  readonly ledger?: Ledger;
  /** Who carries it out. */
  readonly holder?: Holder;
}

export async function readUpgrade(objects: ClusterObjects, now: Date): Promise<UpgradeFacts> {
  const { current } = await LedgerStore.open(objects, async () => {});
  const holder = await leaseHolder(objects, now);
  return { ...(current === undefined ? {} : { ledger: current }), ...(holder === undefined ? {} : { holder }) };
}

/** `not complete; continue: …`, or who carries it out. */
export function upgradeStateText(ledger: Ledger, holder: Holder | undefined): string {
  return holder?.isAlive ? holderText(holder) : phaseText(ledger);
}

interface Holder {
  readonly identity: string;
  readonly renewedAt: string;
  readonly secondsSince: number;
  /** Without a report for so long, it has ended. */
  readonly limitSeconds: number;
  /** Whether it has renewed the Lease in time; by the clock of this machine. */
  readonly isAlive: boolean;
}

/** `undefined` if no process has the Lease. */
async function leaseHolder(objects: ClusterObjects, now: Date): Promise<Holder | undefined> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${UPGRADE_NAMESPACE}/leases/${UPGRADE_NAME}`;
  const { holderIdentity: identity = "", renewTime: renewedAt = "", ...spec } = leaseIn(await objects.read(path)).spec;
  if (identity === "") return undefined;
  const secondsSince = Math.round((now.getTime() - Date.parse(renewedAt)) / 1_000);
  const limitSeconds = spec.leaseDurationSeconds ?? 0;
  return { identity, renewedAt, secondsSince, limitSeconds, isAlive: secondsSince < limitSeconds };
}

const PHASES = {
  running: "not complete",
  complete: "complete",
  "rolling-back": "being rolled back",
  "rolled-back": "rolled back",
} as const;

function phaseText(ledger: Ledger): string {
  return [PHASES[ledger.phase], adviceOf(ledger)].filter(Boolean).join("; ");
}

/** A process that was killed a moment ago looks the same. */
function holderText({ identity: name, secondsSince, limitSeconds }: Holder): string {
  return `carried out by ${name}, which reported ${Math.max(0, secondsSince)} s ago (after ${limitSeconds} s without a report it has ended)`;
}

function statusText(
  ledger: Ledger,
  {
    holder,
    lines,
    page,
  }: { readonly holder: Holder | undefined; readonly lines: readonly string[]; readonly page: Page },
): string {
  const { run, from, to, startedAt, endedAt, steps } = ledger;
  const rows = steps.map((step) => [step.name, step.state, step.endedAt ?? step.startedAt ?? "", step.problem ?? ""]);
  return [
    `Upgrade ${run} from ${from} to ${to}: ${upgradeStateText(ledger, holder)}`,
    ...(holder === undefined || holder.isAlive
      ? []
      : [`${holder.identity} has not reported since ${holder.renewedAt}`]),
    ...lines,
    `Started ${startedAt}${endedAt === undefined ? "" : `, ended ${endedAt}`}`,
    "",
    formatTable(["STEP", "STATE", "SINCE", "PROBLEM"], rows, page),
  ].join("\n");
}
