/** What shows that an upgrade was begun and has not ended, by this tool or by hand. Pure. */
import { identity } from "../../identity.ts";
import type { InstallMethod } from "../engine/facts.ts";
import { isUnfinished, type Ledger } from "../engine/ledger.ts";
import { isLocked } from "./datastore.ts";
import type { ClusterSnapshot } from "./snapshot.ts";
import { describeWorkload } from "./workload.ts";

/** The upgrade of this tool that has begun; `undefined` if there is none, or it has ended. */
export function begunRun(ledger: Ledger | undefined): { readonly from: string; readonly shownBy: string } | undefined {
  if (ledger === undefined || !isUnfinished(ledger)) return undefined;
  const { run, phase, from, to } = ledger;
  const what = phase === "running" ? "upgrade" : "rollback";
  return { from, shownBy: `${what} ${run} of ${identity.adminTool} from ${from} to ${to} has not ended` };
}

export function unfinishedSigns(
  snapshot: ClusterSnapshot,
  { method, disagreements }: { readonly method?: InstallMethod; readonly disagreements: readonly string[] },
): readonly string[] {
  const run = begunRun(snapshot.ledger);
  return [
    ...(run === undefined ? [] : [run.shownBy]),
    ...(disagreements.length === 0 ? [] : [`releases differ: ${disagreements.join(", ")}`]),
    ...rollouts(snapshot),
    ...releaseSigns(snapshot, method),
    ...lockSigns(snapshot),
  ];
}

function rollouts({ workloads }: ClusterSnapshot): readonly string[] {
  return workloads
    .filter(({ desired, updated }) => updated < desired)
    .map((workload) => `${describeWorkload(workload)}: ${workload.updated} of ${workload.desired} pods are up to date`);
}

function releaseSigns({ releases }: ClusterSnapshot, method: InstallMethod | undefined): readonly string[] {
  if (method?.kind !== "chart") return [];
  const { release } = method;
  const place = (each: { readonly namespace: string; readonly name: string }) => `${each.namespace}/${each.name}`;
  const others = releases.filter((each) => place(each) !== place(release));
  return [
    ...(release.status === "deployed" ? [] : [`release ${place(release)} of Helm is ${release.status}`]),
    ...others.map((each) => `release ${place(each)} of Helm is left over`),
  ];
}

function lockSigns({ formerInformation, currentInformation }: ClusterSnapshot): readonly string[] {
  if (isLocked(currentInformation)) return ["the datastore is locked"];
  return currentInformation === undefined && isLocked(formerInformation)
    ? ["the datastore of the earlier release is locked"]
    : [];
}
