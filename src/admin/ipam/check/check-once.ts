/** Everything that `ipam check` finds: problems between IPAM records, and between those and endpoints. */
import type { Datastore } from "../../../datastore/datastore.ts";
import { readAllEntries } from "../../../datastore/pages.ts";
import { readEach } from "../../../datastore/read-each.ts";
import { readValidRecords } from "../../../ipam/all-records.ts";
import { datastoreTime } from "../../../ipam/allocator-means.ts";
import { findProblems, type IpamRecords, type Problem } from "../../../ipam/invariants.ts";
import { withHeldAddresses } from "../../../ipam/proven-endpoint.ts";
import { decodeConfiguration, decodeReservation } from "../../../ipam/records.ts";
import { IPAM_CONFIGURATION_KEY, resourcesPrefix } from "../../../model/keys.ts";
import { profile } from "../../../model/profile.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../../model/workload-endpoint.ts";
import type { Clock } from "../../main/context.ts";
import { findLists, type NamedList } from "../address-lists.ts";
import { allocationsOf } from "../blocks.ts";
import { describeUnreadable, isUncertain, type UnreadableRecord } from "../unreadable-records.ts";
import { type EndpointFacts, type EndpointProblem, findEndpointProblems } from "./leaks-and-duplicates.ts";

export type Finding = Problem | EndpointProblem | UnreadableRecord;

export interface Checked {
  readonly records: IpamRecords;
  readonly endpoints: readonly WorkloadEndpoint[];
  readonly lists: readonly NamedList[];
  readonly findings: readonly Finding[];
  /** The number of addresses without an endpoint that are not reported yet: they were assigned a short time ago. */
  readonly young: number;
}

export async function checkOnce(
  store: Datastore,
  { now, graceMilliseconds }: Pick<EndpointFacts, "now" | "graceMilliseconds">,
): Promise<Checked> {
  const { records, unreadable: unreadableRecords } = await readValidRecords(store);
  const endpoints = readEach(await readAllEntries(store, resourcesPrefix("workloadendpoints")), ({ value, key }) =>
    // An address that only the annotations of a pod claim is not allocated to it by "--fix", and is not a finding.
    withHeldAddresses(workloadEndpoint.read(value, key), records.blocks),
  );
  const profiles = readEach(await readAllEntries(store, resourcesPrefix("profiles")), ({ value, key }) =>
    profile.read(value, key),
  );
  // No other record depends on these two, but no address is assigned while one of them is unreadable.
  const reservations = readEach(await readAllEntries(store, resourcesPrefix("ipreservations")), decodeReservation);
  const lists = await findLists(store);
  const { answers } = await store.read([{ kind: "key", key: IPAM_CONFIGURATION_KEY }]);
  const configurations = readEach(answers.flat(), decodeConfiguration);
  const unreadable = [
    ...unreadableRecords,
    ...[endpoints, profiles, reservations, lists, configurations].flatMap((each) => each.unreadable),
  ];
  const facts = {
    endpoints: endpoints.readable,
    profiles: profiles.readable,
    allocations: records.blocks.flatMap(allocationsOf),
    pools: records.pools,
    now,
  };
  const ofEndpoints = findEndpointProblems({ ...facts, graceMilliseconds });
  const withoutGrace = findEndpointProblems({ ...facts, graceMilliseconds: 0 });
  const certain = [
    ...findProblems({ ...records, lists: lists.readable, now: datastoreTime(store, { now: () => now }) }),
    ...ofEndpoints,
  ].filter((problem) => !unreadable.some((record) => isUncertain(problem, record)));
  return {
    records,
    endpoints: endpoints.readable,
    lists: lists.readable,
    findings: [...unreadable.map(describeUnreadable), ...certain],
    young: withoutGrace.length - ofEndpoints.length,
  };
}

const RECHECK_DELAY_MILLISECONDS = 200;

/** A single check may report operations in progress, since it reads the datastore in pages. */
export async function checkTwice(
  store: Datastore,
  { now, wait }: Pick<Clock, "now" | "wait">,
  graceMilliseconds: number,
): Promise<Checked> {
  const first = await checkOnce(store, { now: now(), graceMilliseconds });
  if (first.findings.length === 0) return first;
  await wait(RECHECK_DELAY_MILLISECONDS);
  const second = await checkOnce(store, { now: now(), graceMilliseconds });
  return { ...second, findings: confirmedFindings(first.findings, second.findings) };
}

/**
 * The findings of both checks: what only one of them found was an operation in progress.
 * Unreadable records need no confirmation: those of the second check count.
 */
function confirmedFindings(first: readonly Finding[], second: readonly Finding[]): readonly Finding[] {
  const seen = new Set(first.map(identityOf));
  return second.filter((finding) => finding.kind === "record-unreadable" || seen.has(identityOf(finding)));
}

/** The findings of the first check that the second does not have. */
export function missingFindings(first: readonly Finding[], second: readonly Finding[]): ReadonlySet<Finding> {
  const left = new Set(second.map(placeOf));
  return new Set(first.filter((finding) => !left.has(placeOf(finding))));
}

/** Without the message, which says less after a repair in part. */
function placeOf(finding: Finding): string {
  if (finding.kind === "record-unreadable") return `${finding.kind} ${finding.key}`;
  const { pool, list, block, handle, address, node }: Omit<Problem, "kind"> = finding;
  return JSON.stringify([finding.kind, pool, list, block, handle, address, node]);
}

function identityOf(finding: Finding): string {
  const { kind, message } = finding;
  return `${kind} ${message}`;
}
