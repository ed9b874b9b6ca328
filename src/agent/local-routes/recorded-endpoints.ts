/** Reads the endpoints of this node from the datastore itself, past any copy. Rare: only before a route is removed. */
import type { Datastore } from "../../datastore/datastore.ts";
import { pagesBelow } from "../../datastore/pages.ts";
import { PluginError } from "../../errors.ts";
import { hostInterfaceName } from "../../model/host-interface-name.ts";
import { parseKey } from "../../model/keys.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { parseWorkloadEndpointName } from "../../model/workload-endpoint-name.ts";
import { type RoutedEndpoint, routedEndpoint } from "./local-routes.ts";

export interface RecordedEndpoints {
  readonly endpoints: readonly RoutedEndpoint[];
  /** Interfaces whose endpoint exists but is unreadable, or cannot be decided yet: their routes are left alone. */
  readonly undecided: ReadonlySet<string>;
}

interface Reading {
  readonly node: string;
  /** What counts of the endpoint; `undefined` if that is not known yet. */
  readonly settled: (endpoint: WorkloadEndpoint) => WorkloadEndpoint | undefined;
}

/** `undefined` if the datastore cannot be reached. */
export async function readRoutedEndpoints(
  store: Pick<Datastore, "read">,
  { node, settled }: Reading,
): Promise<RecordedEndpoints | undefined> {
  const endpoints: RoutedEndpoint[] = [];
  const undecided = new Set<string>();
  try {
    for await (const { entries } of pagesBelow(store, ENDPOINT.prefix(), { node })) {
      for (const { key, value } of entries) {
        const read = readable(value, key);
        const endpoint = read && settled(read);
        const routed = endpoint && routedEndpoint(endpoint, node);
        if (routed !== undefined) endpoints.push(routed);
        if (endpoint === undefined) for (const name of interfaceOf(key, node)) undecided.add(name);
      }
    }
    return { endpoints, undecided };
  } catch {
    return undefined;
  }
}

function readable(value: string, key: string): WorkloadEndpoint | undefined {
  try {
    return ENDPOINT.codec.read(value, key);
  } catch (failure) {
    if (failure instanceof PluginError && failure.kind === "record-malformed") return undefined;
    throw failure;
  }
}

/** The key names the interface of every endpoint that an ADD records. */
function interfaceOf(key: string, node: string): readonly string[] {
  const parts = parseKey(key);
  const named = parts?.kind === "resource" ? parseWorkloadEndpointName(parts.name) : undefined;
  if (parts?.kind !== "resource" || named?.node !== node) return [];
  const { orchestrator, workload, endpoint: ifname } = named;
  if (orchestrator !== "k8s") return [hostInterfaceName({ containerId: workload, ifname })];
  return [hostInterfaceName({ containerId: "", ifname, pod: { namespace: parts.namespace ?? "", name: workload } })];
}
