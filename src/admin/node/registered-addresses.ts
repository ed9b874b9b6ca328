/** The addresses of this host in its Node, found by the methods that the settings of the node agents name. */
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import type { InstalledNetwork } from "../../config/installed-network.ts";
import { kubeAccess } from "../../config/kube-access.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { Address } from "../../ip/address.ts";
import { readOrchestratorNode } from "../../kube/orchestrator-node.ts";
import type { Node } from "../../model/node.ts";
import { readHostFacts } from "../../routing/host-facts.ts";
import { kubeletAddresses, nodeAddresses, withNodeAddresses } from "../../routing/node-addresses.ts";
import type { Context } from "../command.ts";
import { errorMessage } from "../error-message.ts";
import { readSettings } from "./read-settings.ts";

interface AddressSources {
  readonly store: Datastore;
  readonly context: Context;
  readonly name: string;
  /** The name of this host in the orchestrator, if it is recorded. */
  readonly referred: string | undefined;
  readonly kind: DatastoreSettings["kind"];
  /** Gives access to the orchestrator's Node. */
  readonly installed: InstalledNetwork | undefined;
}

export async function withHostAddresses(before: Node["spec"], sources: AddressSources): Promise<Node["spec"]> {
  const { store, context, name } = sources;
  const settings = await readSettings(store, name);
  const addresses = await context.hostAddresses();
  const internalAddresses = () => readInternal(before, sources);
  const facts = await readHostFacts(settings, { addresses, sourceTowards: context.sourceTowards, internalAddresses });
  const found = nodeAddresses(before.bgp, settings, facts);
  for (const problem of found.problems) context.stderr(`Warning: ${problem}\n`);
  return withNodeAddresses(before, found, addresses);
}

/** `undefined` if nothing gives access to the orchestrator's API, or the API does not tell. */
async function readInternal(
  before: Node["spec"],
  { kind, installed, name, referred = name, context }: AddressSources,
): Promise<readonly Address[] | undefined> {
  if (kind === "orchestrator") return kubeletAddresses(before);
  const access = installed && kubeAccess(installed.decoded.config);
  if (access === undefined) return undefined;
  try {
    const client = await context.openKubeClient(access);
    const found = await readOrchestratorNode(client, referred, context.signal).finally(() => client.close());
    return found?.internalAddresses;
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    context.stderr(`Warning: the addresses of Node "${referred}" cannot be read: ${errorMessage(failure)}\n`);
    return undefined;
  }
}
