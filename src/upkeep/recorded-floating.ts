/** The floating IPs of this node's pods, as their endpoints record them and, if endpoints are pods, the host proves them. */
import type { Datastore } from "../datastore/datastore.ts";
import { pagesBelow } from "../datastore/pages.ts";
import {
  describeConflict,
  type FloatingAddress,
  type FloatingClaim,
  floatingClaim,
  planFloating,
} from "../firewall/floating-addresses.ts";
import { readNodeRecords } from "../ipam/leaks/node-records.ts";
import { heldIn, type Proof, provenEndpoint } from "../ipam/proven-endpoint.ts";
import { withoutClaims } from "../model/claimed-endpoint.ts";
import { resourcesPrefix } from "../model/keys.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import { type MarkedLinks, readableEndpoint } from "./recorded-sources.ts";

interface FloatingQuestion extends MarkedLinks {
  readonly node: string;
  readonly allowsFloating: boolean;
}

/** Of all endpoints: with another IPAM plugin nothing else names the namespaces of those of this node. */
export async function readFloating(
  store: Datastore,
  question: FloatingQuestion,
  warn: (message: string) => void,
): Promise<readonly FloatingAddress[]> {
  const { node } = question;
  const judge = store.isOrchestratorApi ? await judgeOfPods(store, question) : (endpoint: WorkloadEndpoint) => endpoint;
  if (judge === undefined) return [];
  const claims: FloatingClaim[] = [];
  for await (const { entries } of pagesBelow(store, resourcesPrefix("workloadendpoints"), { node })) {
    for (const entry of entries) {
      const endpoint = readableEndpoint(entry);
      const claim = endpoint && floatingClaim(entry.key, judge(endpoint), node);
      if (claim !== undefined) claims.push(claim);
    }
  }
  const { addresses, conflicts } = planFloating(claims);
  for (const conflict of conflicts) warn(describeConflict(conflict));
  return addresses;
}

/**
 * The decision of the agent about what pods claim: a recorded pair counts only while its pod has the internal address.
 * `undefined` if no pod can have a floating IP.
 */
async function judgeOfPods(
  store: Datastore,
  { node, allowsFloating, marks, attachments }: FloatingQuestion,
): Promise<((endpoint: WorkloadEndpoint) => WorkloadEndpoint) | undefined> {
  const isRecorded = [...attachments.values()].some(({ floating, mark }) => floating.length > 0 && marks.has(mark));
  if (!allowsFloating || !isRecorded) return undefined;
  const { blocks, otherBlocks } = await readNodeRecords(store, node);
  const proof: Proof = {
    ...{ node, allowsFloating, ...heldIn([...blocks, ...otherBlocks]) },
    attachmentOf: (hostInterface) => {
      const record = attachments.get(hostInterface);
      return record !== undefined && marks.has(record.mark) ? record : undefined;
    },
  };
  return (endpoint) => provenEndpoint(withoutClaims(endpoint), proof).endpoint;
}
