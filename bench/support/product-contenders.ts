/** The product as a measured plugin: on which datastore and with which IPAM, its datastore made ready on a private host. */
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import type { Host } from "../../test/support/host.ts";
import type { MeasuredPlugin } from "./plugin-contender.ts";

export interface ProductSettings {
  readonly name: string;
  /** The folder of the built programs. */
  readonly folder: string;
  /** The fields of the network config that name the datastore. */
  readonly datastore: Readonly<Record<string, string>>;
  /** Pool of the product's own IPAM, or subnet of host-local. */
  readonly cidr: string;
  readonly ipam: "own" | "host-local";
}

/** The peers' configs name the same node. */
const NODE = "here";

export async function prepareProduct(host: Host, settings: ProductSettings): Promise<MeasuredPlugin> {
  const { name, folder, datastore, cidr } = settings;
  const environment = Object.fromEntries(
    Object.entries(datastore).map(([field, value]) => [field.toUpperCase(), value]),
  );
  const admin = join(folder, identity.adminTool);
  await host.must([admin, "datastore", "init"], { environment });
  await host.must([admin, "apply", "-f", "-"], { environment, stdin: resourcesOf(cidr) });
  const config = {
    name: name.replaceAll(/\W+/g, "-"),
    cniVersion: "1.0.0",
    type: identity.product,
    nodename: NODE,
    log_level: "ERROR",
    ...datastore,
    ipam: settings.ipam === "own" ? { type: identity.ipamType } : hostLocal(cidr),
  };
  return { name, program: join(folder, identity.product), config: JSON.stringify(config), path: folder };
}

function resourcesOf(cidr: string): string {
  const apiVersion = `${identity.apiGroup}/v3`;
  const resources = [
    { apiVersion, kind: "Node", metadata: { name: NODE }, spec: {} },
    { apiVersion, kind: "IPPool", metadata: { name: "ours" }, spec: { cidr } },
  ];
  return resources.map((resource) => JSON.stringify(resource)).join("\n---\n");
}

function hostLocal(subnet: string): object {
  return { type: "host-local", ranges: [[{ subnet }]], routes: [{ dst: "0.0.0.0/0" }] };
}
