/** Whether the host that the tool runs on carries out what commands say that policies do. */

import type { Datastore } from "../../datastore/datastore.ts";
import type { Resource } from "../../model/resource.ts";
import { endpointsOfPolicies } from "../../policy/judge/judge.ts";
import { nodeOrHostName } from "../host/node-name.ts";
import type { Given } from "../main/command.ts";
import type { DatastoreAccess, Host } from "../main/context.ts";
import { unenforcedText } from "../node/agent-findings.ts";
import { circumstancesOf } from "../node/check.ts";
import { policyResourcesIn } from "./describe-policies.ts";

/** This host, as a node of the network. */
export interface LocalNode {
  readonly name: string;
  /** Why it does not carry out what policies say: its agent does not run. */
  readonly unenforced?: string;
}

/** `undefined`: this host is not of the network, or that cannot be known. */
export async function readLocalNode(context: DatastoreAccess & Host, given: Given): Promise<LocalNode | undefined> {
  try {
    // What is wrong with the network config is reported by those who use it.
    const quiet = { ...context, stderr: () => {} };
    const circumstances = await circumstancesOf(quiet, given);
    if (!circumstances.hasNetwork) return undefined;
    const unenforced = unenforcedText(await context.readAgentFacts(), circumstances);
    return { name: await nodeOrHostName(quiet, given), ...(unenforced === undefined ? {} : { unenforced }) };
  } catch {
    context.signal.throwIfAborted();
    return undefined;
  }
}

/** Whether it is an endpoint of the node, or a policy that selects one. */
export async function isAppliedAt(node: string, resource: Resource, store: Datastore): Promise<boolean> {
  const resources = await policyResourcesIn(store);
  const { endpoints, hostEndpoints, networkPolicies, globalNetworkPolicies } = resources;
  const isSame = ({ kind, metadata }: Resource) =>
    kind === resource.kind &&
    metadata.name === resource.metadata.name &&
    metadata.namespace === resource.metadata.namespace;
  const policies = [...networkPolicies, ...globalNetworkPolicies].filter(isSame);
  const applied = [
    ...[...endpoints, ...hostEndpoints].filter(isSame),
    ...policies.flatMap(endpointsOfPolicies(resources)),
  ];
  return applied.some(({ spec }) => spec.node === node);
}
