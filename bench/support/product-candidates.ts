/** The product as a measured plugin, with a datastore and an IPAM of choice; its datastore is initialized on a private host. */
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import type { Host } from "../../test/support/host.ts";
import type { MeasuredPlugin } from "./plugin-candidate.ts";
import { buildProduct } from "./programs.ts";

export interface ProductSettings {
  readonly name: string;
  /** The directory of the built programs. */
  readonly folder: string;
  /** The fields of the network config that name the datastore. */
  readonly datastore: Readonly<Record<string, string>>;
  /** Pool of the product's own IPAM, or subnet of host-local. */
  readonly cidr: string;
  readonly ipam: "own" | "host-local";
  /** Absent: the node in the peers' configs. */
  readonly node?: string;
}

const NODE = "here";
/** A second set of products, served by an agent. */
export const FOR_AGENT = ", node agent";

/**
 * With host-local, on the embedded store and on etcd; each has its own pool and datastore, but all sets share the etcd.
 * `addition`: to their names, if there are several sets.
 */
export async function prepareProducts(
  host: Host,
  endpoint: string,
  { addition = "", folder }: { readonly addition?: string; readonly folder?: string } = {},
): Promise<readonly MeasuredPlugin[]> {
  return prepareProductsIn(folder ?? (await buildProduct()), { host, endpoint, addition });
}

async function prepareProductsIn(
  folder: string,
  { host, endpoint, addition }: { readonly host: Host; readonly endpoint: string; readonly addition: string },
): Promise<readonly MeasuredPlugin[]> {
  const product = (title: string) => `${identity.product}, ${title}${addition}`;
  const file = (title: string) => `/var/lib/bench-${fileName(title + addition)}.sqlite`;
  const embedded = { datastore_type: "embedded" };
  const etcd = { datastore_type: "etcdv3", etcd_endpoints: endpoint };
  // A node with an agent has no calls outside it; on one node, both would change each other's block.
  const node = addition === "" ? NODE : `${NODE}-${fileName(addition)}`;
  return [
    await prepareProduct(host, {
      name: product("host-local"),
      folder,
      datastore: { ...embedded, datastore_path: file("host-local") },
      cidr: "10.96.0.0/16",
      ipam: "host-local",
      node,
    }),
    await prepareProduct(host, {
      name: product("embedded"),
      folder,
      datastore: { ...embedded, datastore_path: file("embedded") },
      cidr: "10.97.0.0/16",
      ipam: "own",
      node,
    }),
    await prepareProduct(host, {
      name: product("etcd"),
      folder,
      datastore: etcd,
      cidr: "10.98.0.0/16",
      ipam: "own",
      node,
    }),
  ];
}

export async function prepareProduct(host: Host, settings: ProductSettings): Promise<MeasuredPlugin> {
  const { name, folder, datastore, cidr, node = NODE } = settings;
  const environment = Object.fromEntries(
    Object.entries(datastore).map(([field, value]) => [field.toUpperCase(), value]),
  );
  const admin = join(folder, identity.adminTool);
  await host.must([admin, "datastore", "init"], { environment });
  await host.must([admin, "apply", "-f", "-"], { environment, stdin: resourcesOf(cidr, node) });
  const config = {
    name: fileName(name),
    cniVersion: "1.0.0",
    type: identity.product,
    nodename: node,
    log_level: "ERROR",
    ...datastore,
    ipam: settings.ipam === "own" ? { type: identity.ipamType } : hostLocal(cidr),
  };
  return { name, program: join(folder, identity.product), config: JSON.stringify(config), path: folder };
}

function fileName(title: string): string {
  return title.replaceAll(/\W+/g, "-").replaceAll(/^-|-$/g, "");
}

function resourcesOf(cidr: string, node: string): string {
  const apiVersion = `${identity.apiGroup}/v3`;
  const resources = [
    { apiVersion, kind: "Node", metadata: { name: node }, spec: {} },
    { apiVersion, kind: "IPPool", metadata: { name: "ours" }, spec: { cidr } },
  ];
  return resources.map((resource) => JSON.stringify(resource)).join("\n---\n");
}

function hostLocal(subnet: string): object {
  return { type: "host-local", ranges: [[{ subnet }]], routes: [{ dst: "0.0.0.0/0" }] };
}
