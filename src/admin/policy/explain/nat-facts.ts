/**
 * What rewrites the addresses of packets, for `policy explain`: published ports of this host, Services of the orchestrator,
 * pools that masquerade. Floating IPs and host ports of pods are in their endpoints.
 */

import { reasonOf } from "../../../config/config-files.ts";
import { listed } from "../../../counted.ts";
import type { Datastore } from "../../../datastore/datastore.ts";
import { readAllEntries } from "../../../datastore/pages.ts";
import { readEach } from "../../../datastore/read-each.ts";
import { PluginError } from "../../../errors.ts";
import { type Address, parseAddress } from "../../../ip/address.ts";
import type { KubeClient } from "../../../kube/api.ts";
import { clusterObjects, type Fields } from "../../../kube/objects.ts";
import type { IPPool } from "../../../model/ip-pool.ts";
import { POOL } from "../../../model/kinds.ts";
import { partOf, textOf } from "../../../model/pod-endpoint.ts";
import { protocolNumber, TCP } from "../../../model/protocols.ts";
import { SERVICE_LABEL } from "../../../model/service-endpoints.ts";
import { objectsIn, textsIn } from "../../../model/shape.ts";
import type { RecordedPort } from "../../../policy/judge/published-ports.ts";
import { quoted } from "../../../quote.ts";
import type { HostNetwork } from "../../main/context.ts";

export interface HostPort extends RecordedPort {
  /** Value 0: every address of the host. */
  readonly hostAddress: Address;
}

/** One port of a Service. */
export interface ServicePort {
  /** `NAMESPACE/NAME`. */
  readonly service: string;
  readonly protocol: number;
  readonly addresses: readonly Address[];
  readonly port: number;
  readonly nodePort?: number;
  /** A node sends packets from outside only to backends of its own. */
  readonly isLocal: boolean;
  readonly backends: readonly { readonly address: Address; readonly port: number }[];
}

/** Of the host that the tool runs on. */
export interface ThisHost {
  readonly addresses: readonly Address[];
  readonly hostPorts: readonly HostPort[];
  /** Why there may be more than `hostPorts`. */
  readonly unreadPorts?: string;
}

export interface NatFacts {
  readonly services: readonly ServicePort[];
  /** Whether the endpoints of all nodes say which ports of their hosts they have. */
  readonly areHostPortsRecorded: boolean;
  /** Why `services` is empty although there may be some. */
  readonly unreadServices?: string;
  readonly pools: readonly IPPool[];
}

export async function readNatFacts(
  store: Datastore,
  openApi: () => Promise<KubeClient | undefined>,
): Promise<NatFacts> {
  const pools = readEach(await readAllEntries(store, POOL.prefix()), ({ key, value }) => POOL.codec.read(value, key));
  return {
    ...(await readServices(openApi)),
    areHostPortsRecorded: store.isOrchestratorApi === true,
    pools: pools.readable,
  };
}

export async function readThisHost(context: HostNetwork): Promise<ThisHost> {
  const addresses = (await context.hostAddresses()).map(({ address }) => address);
  try {
    const { owners, unreadable } = await context.publishedPorts();
    const claims = owners.flatMap(({ ports }) => ports);
    const hostPorts = claims.map(({ podAddress: address, podPort: port, ...rest }) => ({ ...rest, address, port }));
    return {
      addresses,
      hostPorts,
      ...(unreadable.length === 0 ? {} : { unreadPorts: listed(unreadable.map(quoted)) }),
    };
  } catch (failure) {
    return { addresses, hostPorts: [], unreadPorts: reasonOf(failure) };
  }
}

async function readServices(
  openApi: () => Promise<KubeClient | undefined>,
): Promise<Pick<NatFacts, "services" | "unreadServices">> {
  try {
    const client = await openApi();
    if (client === undefined) return { services: [] };
    const objects = clusterObjects(client);
    const [services, slices] = await Promise.all([
      objects.list("/api/v1/services"),
      objects.list("/apis/discovery.k8s.io/v1/endpointslices"),
    ]);
    const ofService = Map.groupBy(slices, (slice) => {
      const metadata = partOf(slice, "metadata");
      return `${textOf(metadata, "namespace")}/${textOf(partOf(metadata, "labels"), SERVICE_LABEL)}`;
    });
    return { services: services.flatMap((service) => servicePorts(service, ofService)) };
  } catch (failure) {
    if (failure instanceof PluginError) return { services: [], unreadServices: failure.message };
    throw failure;
  }
}

function servicePorts(object: Fields, slices: ReadonlyMap<string, readonly Fields[]>): readonly ServicePort[] {
  const [metadata, spec] = [partOf(object, "metadata"), partOf(object, "spec")];
  const service = `${textOf(metadata, "namespace")}/${textOf(metadata, "name")}`;
  const isLocal = textOf(spec, "externalTrafficPolicy") === "Local";
  const balanced = objectsIn(partOf(partOf(object, "status"), "loadBalancer")["ingress"]);
  const addresses = [
    ...textsIn(spec["clusterIPs"]),
    ...textsIn(spec["externalIPs"]),
    ...balanced.flatMap((each) => textOf(each, "ip") ?? []),
  ].flatMap((text) => parseAddress(text) ?? []);
  return objectsIn(spec["ports"]).flatMap((each): readonly ServicePort[] => {
    const { port, nodePort } = each;
    if (typeof port !== "number") return [];
    const protocol = protocolNumber(textOf(each, "protocol") ?? "TCP") ?? TCP;
    const backends = (slices.get(service) ?? []).flatMap((slice) => backendsIn(slice, textOf(each, "name") ?? ""));
    const own = { service, protocol, addresses, port, backends, isLocal };
    return [typeof nodePort === "number" ? { ...own, nodePort } : own];
  });
}

/** Of the port with this name. Endpoints that are not ready get no packets. */
function backendsIn(slice: Fields, name: string): ServicePort["backends"] {
  const ports = objectsIn(slice["ports"]).flatMap((each) =>
    (textOf(each, "name") ?? "") === name && typeof each["port"] === "number" ? [each["port"]] : [],
  );
  const addresses = objectsIn(slice["endpoints"])
    .filter((endpoint) => partOf(endpoint, "conditions")["ready"] !== false)
    .flatMap((endpoint) => textsIn(endpoint["addresses"]))
    .flatMap((text) => parseAddress(text) ?? []);
  return addresses.flatMap((address) => ports.map((port) => ({ address, port })));
}
