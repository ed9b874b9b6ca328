/**
 * GC: removes links, endpoints and addresses of this network's attachments on
 * this node that the runtime no longer lists.
 *
 * A failure does not stop it; all failures are reported at the end. An attachment
 * whose link could not be removed keeps its endpoint and addresses: they are in
 * use. One whose endpoint could not be removed keeps its addresses: they lead a
 * later search to the endpoint, which nothing else would do. Attachments are
 * compared by their marks, since a mark may contain a hash. Connections are forgotten only of addresses that an endpoint
 * really had: with the orchestrator's API its users can name those of others.
 */
import type { GcCall } from "../cni/call.ts";
import type { Datastore, Entry } from "../datastore/datastore.ts";
import { pagesBelow } from "../datastore/pages.ts";
import { PluginError } from "../errors.ts";
import { forgetSources } from "../firewall/source-prefixes.ts";
import { trackedConnections } from "../firewall/tracked-connections.ts";
import { identity } from "../identity.ts";
import type { Address } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import { attachmentsFolder, readAttachment } from "../ipam/attachment-record.ts";
import { readyForReleasing, WANTED_CLUSTER } from "../ipam/cluster.ts";
import { readNodeRecords } from "../ipam/leaks/node-records.ts";
import { formatMark, includesMarkOf, isMarkOf } from "../ipam/link-mark.ts";
import { requireOwnNodeEntry, wantedNode } from "../ipam/node-machine.ts";
import { among, type IsKept, releaseLeaked } from "../ipam/plugin/gc.ts";
import { withHeldAddresses } from "../ipam/proven-endpoint.ts";
import { thisMachine } from "../ipam/session.ts";
import { listLinks } from "../linux/rtnetlink/link.ts";
import type { LinkRemoval, RemovalMeans } from "../linux/rtnetlink/link-removal.ts";
import { withRouteSocket } from "../linux/rtnetlink/route-socket.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import { resourcesPrefix } from "../model/keys.ts";
import { loadDelegation } from "./load-delegation.ts";
import { collectOnHost } from "./record-on-host.ts";
import type { Session } from "./session.ts";
import { readStoredEndpoint, type StoredEndpoint } from "./stored-endpoint.ts";
import { removeHostLink } from "./wire.ts";

type Failures = unknown[];

/** The network to collect, and which of its attachments keep endpoints and addresses. */
interface Keep {
  readonly network: string;
  readonly isKept: IsKept;
}

export async function gc(call: GcCall, session: Session): Promise<void> {
  if (call.validAttachments === undefined) return;
  const failures: Failures = [];
  const network = call.networkName;
  const valid = new Set(call.validAttachments.map((each) => formatMark({ network, ...each })));
  const { host } = session.surroundings;
  const warn = (message: string) => session.log.warning(message);
  const removal = await host.links.removal();
  const remaining = await collectLinks(network, valid, { failures, removal, kernel: host.kernel });
  const kept = new Set([...valid, ...remaining]);
  const keep: Keep = {
    network,
    isKept: (containerId, ifname) => includesMarkOf(kept, { network, containerId, ifname }),
  };
  const tracked = await trackedConnections(host.netfilter, warn);
  const forget = async (addresses: readonly Address[]) => tracked?.forget(addresses);
  const steps: readonly (() => Promise<void>)[] = [
    () => collectRecords({ ...keep, forget }, session, failures),
    () => forgetSources(host, warn),
    () => collectOnHost({ network, kept }, session),
    // Another IPAM plugin only gets the valid attachments: it would release the addresses of links that remain.
    ...(remaining.length === 0 ? [() => collectDelegated(call, session)] : []),
  ];
  for (const step of steps) await step().catch((failure) => failures.push(failure));
  if (failures.length > 0) throw combined(failures);
}

/** Returns the marks of links that could not be removed. */
async function collectLinks(
  network: string,
  valid: ReadonlySet<string>,
  {
    failures,
    removal,
    kernel,
  }: Pick<RemovalMeans, "kernel"> & {
    readonly failures: Failures;
    readonly removal: LinkRemoval;
  },
): Promise<readonly string[]> {
  const stale = withRouteSocket(kernel, listLinks).filter(
    ({ name, kind, alias }) =>
      kind === "veth" &&
      name.startsWith(identity.interfacePrefix) &&
      alias !== undefined &&
      isMarkOf(network, alias) &&
      !valid.has(alias),
  );
  // All at once: the kernel then waits once for many links.
  const remaining = await Promise.all(
    stale.map(async (link) => {
      try {
        await removeHostLink(link, (each) => removal.remove(each));
        return [];
      } catch (failure) {
        failures.push(failure);
        return link.alias === undefined ? [] : [link.alias];
      }
    }),
  );
  return remaining.flat();
}

interface Collecting extends Keep {
  /** Before an address can be assigned again. */
  readonly forget: (addresses: readonly Address[]) => Promise<void>;
}

async function collectRecords(keep: Collecting, session: Session, failures: Failures): Promise<void> {
  const left = await collectEndpoints(keep, session, failures);
  const isLeft = among(left);
  const isKept: IsKept = (containerId, ifname) => keep.isKept(containerId, ifname) || isLeft(containerId, ifname);
  await releaseLeaked({ ...keep, isKept }, session);
}

/** Returns those that should be gone, and are not. */
async function collectEndpoints(
  keep: Collecting,
  session: Session,
  failures: Failures,
): Promise<readonly StoredEndpoint[]> {
  const store = await session.store();
  const { answers } = await store.read([WANTED_CLUSTER, wantedNode(session.node)]);
  readyForReleasing(answers[0]);
  requireOwnNodeEntry(answers[1], thisMachine(session));
  const host = await hostOf(session);
  const left: StoredEndpoint[] = [];
  for await (const { entries, blocks } of endpointsOfNode(store, session)) {
    for (const entry of entries) {
      let stale: StoredEndpoint | undefined;
      try {
        stale = staleEndpoint(entry, keep, session);
        if (stale === undefined) continue;
        await keep.forget(await heldAddresses(entry, blocks, host));
        // Refused if it has changed meanwhile: then it may be in use.
        const written = await store.commit([{ kind: "delete", key: entry.key, revision: entry.revision }]);
        if (!written.ok && written.reason !== "missing") left.push(stale);
      } catch (failure) {
        failures.push(failure);
        if (stale !== undefined) left.push(stale);
      }
    }
  }
  return left;
}

interface EndpointsAndBlocks {
  readonly entries: readonly Entry[];
  /** Of the node, and those that it borrowed from; none with another IPAM plugin. */
  readonly blocks: readonly IPAMBlock[];
}

/**
 * With another IPAM plugin, and for addresses without IPAM, nothing but the endpoints themselves names their namespaces:
 * all of them are read, in pages; on the orchestrator's API those of this node.
 */
async function* endpointsOfNode(
  store: Datastore,
  { config, node, settings }: Session,
): AsyncGenerator<EndpointsAndBlocks> {
  const isOfIpam = config.ipam.type === identity.ipamType;
  const areNamedByIpam = isOfIpam && !config.features.ipAddrsNoIpam;
  const needsBlocks = areNamedByIpam || (isOfIpam && settings.kind === "orchestrator");
  const records = needsBlocks ? await readNodeRecords(store, node) : undefined;
  const blocks = records === undefined ? [] : [...records.blocks, ...records.otherBlocks];
  if (records !== undefined && areNamedByIpam) {
    yield { entries: [...records.endpoints.values()], blocks };
    return;
  }
  for await (const { entries } of pagesBelow(store, resourcesPrefix("workloadendpoints"), { node }))
    yield { entries, blocks };
}

/** The runtime's list only concerns its own node. */
function staleEndpoint(entry: Entry, { network, isKept }: Keep, { node }: Session): StoredEndpoint | undefined {
  const endpoint = readStoredEndpoint(entry);
  if (endpoint.node !== node || endpoint.network !== network) return undefined;
  return isKept(endpoint.containerId ?? "", endpoint.ifname) ? undefined : endpoint;
}

/** The addresses that something else than its annotations proves. */
export async function heldAddresses(
  { key, value }: Entry,
  blocks: readonly IPAMBlock[],
  host: Parameters<typeof withHeldAddresses>[2],
): Promise<readonly Address[]> {
  // The complete decoder takes longer to load than most calls.
  const { workloadEndpoint } = await import("../model/workload-endpoint.ts");
  const { ipNetworks = [] } = withHeldAddresses(workloadEndpoint.read(value, key), blocks, host).spec;
  return ipNetworks.flatMap((text) => parseInterfaceAddress(text)?.address ?? []);
}

async function hostOf({ node, settings, surroundings }: Session): Promise<Parameters<typeof withHeldAddresses>[2]> {
  if (settings.kind !== "orchestrator") return undefined;
  const folder = await surroundings.openFolder(attachmentsFolder(surroundings.runDirectory));
  return { node, attachmentOf: (hostInterface) => readAttachment(folder, hostInterface) };
}

async function collectDelegated(call: GcCall, session: Session): Promise<void> {
  if (session.config.ipam.type === identity.ipamType) return;
  const { ipamOf } = await loadDelegation();
  await (await ipamOf(session, call)).gc(call, session.signal);
}

/** One error for all failures, with the kind of the first. */
function combined(failures: Failures): PluginError {
  const messages = new Set(failures.map((failure) => (failure instanceof Error ? failure.message : String(failure))));
  const [first] = failures;
  const kind = first instanceof PluginError ? first.kind : "internal";
  return new PluginError(kind, `Cannot collect everything: ${[...messages].join("; ")}`, { cause: first });
}
