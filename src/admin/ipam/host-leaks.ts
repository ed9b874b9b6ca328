/** Compares the addresses that are recorded for a node with the host that the tool runs on. Changes nothing. */
import type { Datastore } from "../../datastore/datastore.ts";
import { findLeaks, type Leak, splitBySince } from "../../ipam/leaks/find.ts";
import { type NodeRecords, readNodeRecords } from "../../ipam/leaks/node-records.ts";
import { requireOwnNodeEntry, requireRegisteredByThis, wantedNode } from "../../ipam/node-machine.ts";
import type { Context, Given, HostLinks } from "../command.ts";
import { nameOfNode } from "../node/node-name.ts";

export interface HostSearch {
  readonly node: string;
  /** Only this host uses an embedded datastore. */
  readonly isEmbedded: boolean;
  readonly links: HostLinks;
  /** What to do with addresses that were assigned before this machine registered the node. */
  readonly earlier: "judge" | "keep";
}

export interface HostLeaks {
  readonly records: NodeRecords;
  readonly leaks: readonly Leak[];
  /** How many addresses look leaked, but may be another machine's. */
  readonly unjudged: number;
}

const FIRST_MOMENT = new Date(0);

/** Fails if the node may be another machine's. */
export async function searchHost(
  store: Datastore,
  { node, isEmbedded, links, earlier }: HostSearch,
  context: Pick<Context, "machineIdentity" | "now">,
): Promise<HostLeaks> {
  const machine = await context.machineIdentity();
  const { answers } = await store.read([wantedNode(node)]);
  const own = { node, machineIdentity: () => machine };
  if (isEmbedded) requireOwnNodeEntry(answers[0], own);
  const since = isEmbedded ? FIRST_MOMENT : requireRegisteredByThis(answers[0], own);

  const records = await readNodeRecords(store, node);
  const evidence = { links, now: context.now() };
  const judged = splitBySince(records.allocations, earlier === "judge" ? FIRST_MOMENT : since);
  return {
    records,
    leaks: findLeaks(judged.certain, evidence),
    unjudged: findLeaks(judged.earlier, evidence).length,
  };
}

/** For a check of all nodes, which may run anywhere: `undefined` if nothing can be said about this host. */
export async function searchHostIfKnown(
  store: Datastore,
  { context, given, isEmbedded }: { readonly context: Context; readonly given: Given; readonly isEmbedded: boolean },
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
