/**
 * `ipam release --from-report`: releases what `ipam check --report` found leaked.
 *
 *   reports of this cluster? ──> of this release? ──> one of them made since the datastore was last locked or unlocked?
 *     ──> datastore locked? ──> leaked in all reports ──> no endpoint names it now ──> released if it still belongs to that owner
 */

import { counted } from "../../../counted.ts";
import type { Datastore } from "../../../datastore/datastore.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { formatAddress } from "../../../ip/address.ts";
import { quoted } from "../../../quote.ts";
import { withDatastore } from "../../datastore/open.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Call, Clock, DatastoreAccess, Files, Terminal } from "../../main/context.ts";
import { parseDocument } from "../../manifest/parse-document.ts";
import { readText } from "../../manifest/sources.ts";
import { type AddressReport, decodeAddressReport, leaksInAll } from "../address-report.ts";
import { describeUser, findEndpoints, usersOfAddresses } from "../address-users.ts";
import { allocatorFor } from "../allocator.ts";
import { type ClusterState, LOCK_COMMAND, readClusterState } from "../cluster-state.ts";

interface NamedReport {
  readonly file: string;
  readonly report: AddressReport;
}

interface ReleasedFromReports {
  readonly released: readonly string[];
  /** Leaked in all reports, and not released, with the reason. */
  readonly kept: readonly { readonly address: string; readonly reason: string }[];
  readonly handles: readonly string[];
}

async function readReports(context: Terminal & Files, files: readonly string[]): Promise<readonly NamedReport[]> {
  const reports: NamedReport[] = [];
  for (const file of files) {
    const parsed = parseDocument({ text: await readText(context, file), line: 1 });
    const report = parsed.ok ? decodeAddressReport(parsed.value) : undefined;
    if (report === undefined) {
      const details = `"${identity.adminTool} ipam check --report FILE" writes one`;
      throw new PluginError("decode-failure", `Cannot use ${quoted(file)}: it is not a report of "ipam check"`, {
        details: parsed.ok ? details : `${parsed.problems.join("; ")}; ${details}`,
      });
    }
    reports.push({ file, report });
  }
  return reports;
}

async function releaseFromReports(
  store: Datastore,
  context: Call & Clock,
  { reports, isForced }: { readonly reports: readonly NamedReport[]; readonly isForced: boolean },
): Promise<ReleasedFromReports> {
  refuseUnsafe(await readClusterState(store), { reports, isForced, version: context.version });
  const { addresses, handles } = leaksInAll(reports.map(({ report }) => report));
  const endpoints = await findEndpoints(store);
  const kept = new Map<string, string>();
  for (const { address } of addresses) {
    const [user] = usersOfAddresses(endpoints, [address]);
    if (user !== undefined) kept.set(formatAddress(address), `it is in use: ${describeUser(user)}`);
  }
  // The reports are true as long as nobody else changes anything.
  const allocator = allocatorFor(store, context, { lock: "ignore" });
  const wanted = addresses.filter(({ address }) => !kept.has(formatAddress(address)));
  const { released, absent, refused } = await allocator.releaseAddresses(wanted);
  for (const address of absent) kept.set(formatAddress(address), "it is free already");
  for (const address of refused) kept.set(formatAddress(address), "it was assigned again since the report");
  for (const handle of handles) await allocator.recountHandle({ handle, likely: [] });
  return {
    released: released.map(formatAddress),
    kept: [...kept].map(([address, reason]) => ({ address, reason })),
    handles,
  };
}

interface Guarded {
  readonly reports: readonly NamedReport[];
  readonly isForced: boolean;
  readonly version: string;
}

/** Throws the first reason why the reports must not be used. --force is for the release and the lock only. */
function refuseUnsafe(cluster: ClusterState, { reports, isForced, version }: Guarded): void {
  for (const { file, report } of reports) {
    if (report.clusterGUID === cluster.clusterGUID) continue;
    throw new PluginError(
      "resource-invalid",
      `Cannot release from ${quoted(file)}: it is of another cluster (GUID ${quoted(report.clusterGUID)}, this one has ${quoted(cluster.clusterGUID)})`,
      { details: "check the datastore options, or make a report of this cluster" },
    );
  }
  const other = isForced ? undefined : reports.find(({ report }) => report.version !== version);
  if (other !== undefined) {
    throw new PluginError(
      "resource-invalid",
      `Cannot release from ${quoted(other.file)}: it was written by ${quoted(other.report.version)}, and this is ${quoted(version)}`,
      { details: "make the report again with this release, or use --force" },
    );
  }
  if (!reports.some(({ report }) => report.clusterInformationRevision === cluster.revision)) {
    throw new PluginError(
      "resource-changed",
      `Cannot release: ${reports.length === 1 ? "the report is" : `all ${counted(reports.length, "report")} are`} older than the last change of ClusterInformation`,
      { details: "lock the datastore, make a report, and release from it before the datastore is unlocked" },
    );
  }
  if (cluster.isLocked || isForced) return;
  throw new PluginError(
    "resource-in-use",
    "Cannot release: the datastore is not locked, so that addresses may be assigned meanwhile",
    {
      details: `${LOCK_COMMAND} locks it; or use --force`,
    },
  );
}

export async function releaseReported(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  if (given.lists.has("ip") || given.values.has("handle")) {
    throw new UsageError("--from-report cannot be combined with --ip or --handle");
  }
  const reports = await readReports(context, given.lists.get("from-report") ?? []);
  const isForced = given.switches.has("force");
  const result = await withDatastore(context, given, (store) =>
    releaseFromReports(store, context, { reports, isForced }),
  );
  const { released, kept, handles } = result;
  if (wantsJson(given)) context.stdout(`${JSON.stringify(result, undefined, 2)}\n`);
  else {
    for (const address of released) context.stdout(`Released ${address}\n`);
    for (const handle of handles) context.stdout(`Removed handle ${handle}\n`);
    for (const { address, reason } of kept) context.stdout(`Kept ${address}: ${reason}\n`);
    if (released.length + handles.length + kept.length === 0) context.stdout("Nothing to release: nothing is leaked\n");
  }
  return EXIT_OK;
}
