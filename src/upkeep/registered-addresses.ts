/** The addresses of this host in its Node, found by the methods that the settings of the node agents name. */
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { describeFailure, PluginError } from "../errors.ts";
import type { Address } from "../ip/address.ts";
import { readOrchestratorNode } from "../kube/orchestrator-node.ts";
import type { Node } from "../model/node.ts";
import { readHostFacts } from "../routing/host-facts.ts";
import { kubeletAddresses, nodeAddresses, withNodeAddresses } from "../routing/node-addresses.ts";
import type { HostMeans } from "./host-means.ts";
import type { OrchestratorSide } from "./orchestrator-name.ts";
import { readSettings } from "./read-settings.ts";

interface AddressSources {
  readonly store: Datastore;
  readonly means: HostMeans;
  readonly name: string;
  /** The name of this host in the orchestrator, if it is recorded. */
  readonly referred: string | undefined;
  readonly kind: DatastoreSettings["kind"];
  readonly orchestrator: OrchestratorSide | undefined;
}

export async function withHostAddresses(before: Node["spec"], sources: AddressSources): Promise<Node["spec"]> {
  const { store, means, name } = sources;
  const settings = await readSettings(store, name);
  const addresses = await means.hostAddresses();
  const internalAddresses = () => readInternal(before, sources);
  const facts = await readHostFacts(settings, { addresses, sourceTowards: means.sourceTowards, internalAddresses });
  const found = nodeAddresses(before.bgp, settings, facts);
  for (const problem of found.problems) means.warn(problem);
  return withNodeAddresses(before, found, addresses);
}

/** `undefined` if nothing gives access to the orchestrator's API, or the API does not tell. */
async function readInternal(
  before: Node["spec"],
  { kind, orchestrator, name, referred = name, means }: AddressSources,
): Promise<readonly Address[] | undefined> {
  if (kind === "orchestrator") return kubeletAddresses(before);
  if (orchestrator === undefined) return undefined;
  try {
    const client = await means.openKubeClient(orchestrator.access);
    const found = await readOrchestratorNode(client, referred, means.signal).finally(() => client.close());
    return found?.internalAddresses;
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    means.warn(`the addresses of Node "${referred}" cannot be read: ${describeFailure(failure)}`);
    return undefined;
  }
}
