/** The options of `install` that describe the network, and the Installation that they amount to. Pure. */

import { apiVersionOf, OPERATOR_API } from "../../identity.ts";
import { OWN_TYPE } from "../../model/installation/choices.ts";
import { DEFAULT_NAME } from "../../model/installation/installation.ts";
import { NETWORK_FIELD } from "../../model/installation/names.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { type Given, UsageError } from "../main/command.ts";
import { NETWORK_OPTIONS } from "./options.ts";

/** Whether any of these options is given: then there is no file. */
export function networkFlags({ values, lists }: Given): readonly string[] {
  return NETWORK_OPTIONS.map(({ name }) => name).filter(
    (name) => values.has(name) || (lists.get(name) ?? []).length > 0,
  );
}

export function installationFromFlags({ values, lists }: Given): KubeObject {
  const cidrs = (lists.get("pod-cidr") ?? []).flatMap((each) => each.split(","));
  const encapsulation = values.get("encapsulation");
  if (encapsulation !== undefined && cidrs.length === 0) {
    throw new UsageError('"--encapsulation" needs "--pod-cidr": it is that of the pools');
  }
  const mtu = values.get("mtu");
  const network = withoutAbsent({
    bgp: values.get("bgp"),
    hostPorts: values.get("host-ports"),
    mtu: mtu === undefined ? undefined : wholeNumber(mtu),
    ipPools: cidrs.length === 0 ? undefined : cidrs.map((cidr) => withoutAbsent({ cidr, encapsulation })),
  });
  const secrets = lists.get("image-pull-secret") ?? [];
  const ipam = values.get("ipam");
  const spec = withoutAbsent({
    registry: values.get("registry"),
    imagePath: values.get("image-path"),
    imagePullSecrets: secrets.length === 0 ? undefined : secrets.map((name) => ({ name })),
    cni: ipam === undefined ? undefined : { type: OWN_TYPE, ipam: { type: ipam } },
    datastore: datastoreOf(values),
    [NETWORK_FIELD]: Object.keys(network).length === 0 ? undefined : network,
  });
  return { apiVersion: apiVersionOf(OPERATOR_API), kind: "Installation", metadata: { name: DEFAULT_NAME }, spec };
}

function datastoreOf(values: Given["values"]): object | undefined {
  const endpoints = values.get("etcd-endpoints");
  const discoverySrv = values.get("etcd-discovery-srv");
  const secretName = values.get("etcd-secret");
  if (endpoints !== undefined && discoverySrv !== undefined) {
    throw new UsageError('"--etcd-discovery-srv" cannot be used with "--etcd-endpoints"');
  }
  const hasServers = endpoints !== undefined || discoverySrv !== undefined;
  const type = values.get("datastore") ?? (hasServers ? "Etcd" : undefined);
  const servers = '"--etcd-endpoints" or "--etcd-discovery-srv"';
  if (type === undefined && secretName !== undefined) throw new UsageError(`"--etcd-secret" needs ${servers}`);
  if (type === "Etcd" && !hasServers) throw new UsageError(`"--datastore Etcd" needs ${servers}`);
  if (type === undefined) return undefined;
  const urls = endpoints?.split(",").map((url) => url.trim());
  return withoutAbsent({
    type,
    etcd: hasServers ? withoutAbsent({ endpoints: urls, discoverySrv, secretName }) : undefined,
  });
}

function wholeNumber(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new UsageError(`"--mtu" must be a whole number, not "${text}"`);
  return Number(text);
}

function withoutAbsent(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
