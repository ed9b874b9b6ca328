import { counted } from "../../../counted.ts";
import type { Datastore } from "../../../datastore/datastore.ts";
import { identity } from "../../../identity.ts";
import { formatAddress } from "../../../ip/address.ts";
import { describeNodeAllocation } from "../../../ipam/leaks/allocations.ts";
import { releaseLeaks } from "../../../ipam/leaks/release.ts";
import { type KeptAllocation, keptIn } from "../../../ipam/leaks/waiting-addresses.ts";
import { endOfKeeping } from "../../../model/kept-address.ts";
import { quoted } from "../../../quote.ts";
import { type HostLeaks, searchHost } from "../../../upkeep/host-leaks.ts";
import { withDatastore } from "../../datastore/open.ts";
import { nameOfNode } from "../../host/node-name.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Call, Clock, DatastoreAccess, Host, HostAccess, HostNetwork, Terminal } from "../../main/context.ts";
import { stdoutPage } from "../../terminal/page.ts";
import { paint, paintStderr } from "../../terminal/paint.ts";
import { openProgress } from "../../terminal/progress.ts";
import { formatTable } from "../../terminal/table.ts";
import { type SharedAddress, sharedAddresses } from "../address-lists.ts";
import { allocatorFor } from "../allocator.ts";
import { type Allocation, allocationsOf } from "../blocks.ts";
import { readClusterState } from "../cluster-state.ts";
import { type Checked, checkOnce, checkTwice, type Finding, missingFindings } from "./check-once.ts";
import { USUAL_GRACE_MILLISECONDS } from "./leaks-and-duplicates.ts";
import { listedAddresses } from "./listed-addresses.ts";
import { repair } from "./repair.ts";
import { writeReport } from "./write-report.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const file = given.values.get("report");
  if (file !== undefined && given.switches.has("fix")) throw new UsageError("--report and --fix cannot be combined");
  const report = await withDatastore(context, given, async (store, { kind }) => {
    const cluster = file === undefined ? undefined : await readClusterState(store);
    const examined = await examine(store, context, {
      host: await searchHostIfKnown(store, { context, given, isEmbedded: kind === "embedded" }),
      fixes: given.switches.has("fix"),
      graceMilliseconds: given.switches.has("no-grace") ? 0 : USUAL_GRACE_MILLISECONDS,
    });
    if (file !== undefined && cluster !== undefined) await writeReport(file, examined, { cluster, context });
    return examined;
  });
  print(report, context, given);
  return report.findings.every(({ fixed }) => fixed) ? EXIT_OK : EXIT_FAILED;
}

/** What it finds, for `status`: changes nothing. */
export async function findIpamProblems(
  store: Datastore,
  where: { readonly context: HostAccess & Clock; readonly given: Given; readonly isEmbedded: boolean },
): Promise<readonly JudgedFinding[]> {
  const host = await searchHostIfKnown(store, where);
  const options = { host, fixes: false, graceMilliseconds: USUAL_GRACE_MILLISECONDS };
  return (await examine(store, where.context, options)).findings;
}

interface Report {
  readonly counts: {
    readonly pools: number;
    readonly blocks: number;
    readonly addresses: number;
    readonly handles: number;
  };
  readonly findings: readonly JudgedFinding[];
  readonly allocations: readonly Allocation[];
  /** Why `--fix` did not repair anything. */
  readonly note?: string;
  /** Addresses without an endpoint that are not reported yet. */
  readonly young: number;
  /** Addresses that wait for a pod, and should have been freed long ago. */
  readonly overdue: number;
  /** Addresses that several lists have. */
  readonly shared: readonly SharedAddress[];
}

/** `remedy`: what the operator can do about a finding that is not fixed. */
export type JudgedFinding = (Finding | ContainerGone) & { readonly fixed: boolean; readonly remedy?: string };

/** An address of this host whose container is gone, as the kernel shows. */
interface ContainerGone {
  readonly kind: "container-gone";
  readonly severity: "unfinished";
  readonly message: string;
  readonly address: string;
}

async function examine(
  store: Datastore,
  context: Call & Terminal & HostNetwork & Clock,
  {
    fixes,
    graceMilliseconds,
    host,
  }: { readonly fixes: boolean; readonly graceMilliseconds: number; readonly host: HostLeaks | undefined },
): Promise<Report> {
  const checked = await checkTwice(store, context, graceMilliseconds);
  const { records, findings } = checked;
  const allocations = records.blocks.flatMap(allocationsOf);
  const refusal = fixes ? refusalToRepair(findings) : undefined;
  const isRepaired = fixes && refusal === undefined;
  return {
    counts: {
      pools: records.pools.length,
      blocks: records.blocks.length,
      addresses: allocations.length,
      handles: records.handles.length,
    },
    findings: [
      ...(isRepaired ? await repairAll(store, context, { checked, graceMilliseconds }) : findings.map(notFixed)),
      ...(await judgeHost(store, context, { host, fixes: isRepaired, known: addressesIn(findings) })),
    ],
    allocations,
    ...(refusal === undefined ? {} : { note: refusal }),
    young: checked.young,
    overdue: records.blocks.flatMap(keptIn).filter((each) => isOverdue(each, context.now())).length,
    shared: sharedAddresses(checked.lists),
  };
}

const OVERDUE_MILLISECONDS = 60 * 60 * 1000;

function isOverdue({ kept }: KeptAllocation, now: Date): boolean {
  const end = endOfKeeping(kept);
  return end !== undefined && now.getTime() - end.getTime() > OVERDUE_MILLISECONDS;
}

/** An unreadable record could disprove what the other records show. */
function refusalToRepair(findings: readonly Finding[]): string | undefined {
  const count = findings.filter(({ kind }) => kind === "record-unreadable").length;
  if (count === 0) return undefined;
  return `--fix changed nothing: ${counted(count, "record is", "records are")} unreadable, and a repair could depend on ${count === 1 ? "it" : "them"}`;
}

function notFixed(finding: Finding): JudgedFinding {
  return { ...finding, fixed: false };
}

/** A finding is fixed if the next check does not have it: one repair may fix several. */
async function repairAll(
  store: Datastore,
  context: Call & Terminal & Clock,
  { checked, graceMilliseconds }: { readonly checked: Checked; readonly graceMilliseconds: number },
): Promise<readonly JudgedFinding[]> {
  const { findings, records, endpoints } = checked;
  const repairContext = { records, endpoints, store, allocator: allocatorFor(store, context), now: context.now() };
  const progress = openProgress(context, "Repairing", findings.length);
  const remedies = new Map<Finding, string>();
  for (const finding of findings) {
    const remedy = await repair(finding, repairContext);
    if (remedy !== undefined) remedies.set(finding, remedy);
    progress.step();
  }
  progress.end();
  const after = await checkOnce(store, { now: context.now(), graceMilliseconds });
  const fixed = missingFindings(findings, after.findings);
  return findings.map((finding): JudgedFinding => {
    const remedy = remedies.get(finding);
    if (fixed.has(finding) || remedy === undefined) return { ...finding, fixed: fixed.has(finding) };
    return { ...finding, fixed: false, remedy };
  });
}

function addressesIn(findings: readonly Finding[]): ReadonlySet<string> {
  return new Set(findings.flatMap((finding) => ("address" in finding ? (finding.address ?? []) : [])));
}

/** `known`: addresses with a finding already. */
async function judgeHost(
  store: Datastore,
  context: HostNetwork & Clock,
  {
    host,
    fixes,
    known,
  }: { readonly host: HostLeaks | undefined; readonly fixes: boolean; readonly known: ReadonlySet<string> },
): Promise<readonly JudgedFinding[]> {
  const leaks = host?.leaks.filter(({ allocation }) => !known.has(formatAddress(allocation.address))) ?? [];
  if (host === undefined || leaks.length === 0) return [];
  const allocator = allocatorFor(store, context);
  const released = fixes
    ? await releaseLeaks(leaks, host, { store, allocator, forget: context.forgetConnections })
    : [];
  const done = new Set(released.map(formatAddress));
  return leaks.map(({ allocation, reason }): JudgedFinding => {
    const address = formatAddress(allocation.address);
    const message = `Address ${describeNodeAllocation(allocation)} is leaked: ${reason}`;
    return { kind: "container-gone", severity: "unfinished", message, address, fixed: done.has(address) };
  });
}

function print(
  { counts, findings, allocations, note, young, overdue, shared }: Report,
  context: Call & Terminal,
  given: Given,
): void {
  const shown = given.switches.has("show-all-ips")
    ? "all"
    : given.switches.has("show-problem-ips")
      ? "problems"
      : "none";
  const addresses = listedAddresses(allocations, findings, shown);
  if (wantsJson(given)) {
    const plain = findings.map((finding) => ({ ...finding, leaked: undefined }));
    const ok = findings.every(({ fixed }) => fixed);
    context.stdout(
      `${JSON.stringify({ ok, counts, findings: plain, ...(shown === "none" ? {} : { addresses }), note }, undefined, 2)}\n`,
    );
    return;
  }
  const { red, green, yellow } = paint(context);
  for (const { kind, severity, message, fixed, remedy } of findings) {
    const left = severity === "corrupt" ? red("error") : yellow("unfinished");
    context.stdout(`${fixed ? green("fixed") : left}: ${message} [${kind}]\n`);
    // The message of an unreadable record contains its remedy.
    if (remedy !== undefined && kind !== "record-unreadable") context.stdout(`  to fix it: ${remedy}\n`);
  }
  if (addresses.length > 0) {
    const rows = addresses.map(({ address, state, owner }) => [address, state, owner]);
    context.stdout(`${formatTable(["ADDRESS", "STATE", "OWNER"], rows, stdoutPage(context))}\n`);
  }
  const { pools, blocks, handles } = counts;
  const checked = [
    counted(pools, "pool"),
    counted(blocks, "block"),
    `${counted(counts.addresses, "address", "addresses")} in use`,
    counted(handles, "handle"),
  ].join(", ");
  const left = findings.filter(({ fixed }) => !fixed).length;
  context.stdout(`Checked ${checked}: ${left === 0 ? green("no problems") : red(counted(left, "problem"))}\n`);
  if (young > 0) {
    const count = counted(young, "address without an endpoint was", "addresses without an endpoint were");
    context.stderr(
      `${count} assigned less than an hour ago and not checked: use --no-grace to check recent ones too\n`,
    );
  }
  if (overdue > 0) {
    const [count, their] =
      overdue === 1 ? ["1 kept address waits", "its"] : [`${overdue} kept addresses wait`, "their"];
    context.stderr(
      `${count} for a pod although ${their} keepFor has been over for an hour: the controllers free such addresses if they run; ` +
        `"${identity.adminTool} ipam show --addresses" lists them, "${identity.adminTool} ipam release" frees them\n`,
    );
  }
  const [first] = shared;
  if (first !== undefined) {
    const count = counted(shared.length, "address is", "addresses are");
    const place = `${formatAddress(first.address)} in ${first.lists.map(quoted).join(" and ")}`;
    context.stderr(
      `${count} in several IPAddressLists, so that their pods compete for ${shared.length === 1 ? "it" : "them"}: ${place}${shared.length === 1 ? "" : ", for example"}\n`,
    );
  }
  if (note !== undefined) context.stderr(`${paintStderr(context).yellow("note:")} ${note}\n`);
}

/** For a check of all nodes, which may run anywhere: `undefined` if nothing can be said about this host. */
async function searchHostIfKnown(
  store: Datastore,
  {
    context,
    given,
    isEmbedded,
  }: { readonly context: HostAccess & Clock; readonly given: Given; readonly isEmbedded: boolean },
): Promise<HostLeaks | undefined> {
  try {
    const links = await context.hostLinks();
    if (!links.isHostNamespace) return undefined;
    const node = await nameOfNode(context, given);
    return await searchHost(store, { node, isEmbedded, links, earlier: "keep" }, context);
  } catch {
    // No permission, no usable network config, no registration, or another machine's.
    return undefined;
  }
}
