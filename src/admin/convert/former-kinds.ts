/** The kinds of the v1 API -> resources of v3. Pure: a problem is reported, not thrown. */
import { API_VERSION, identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { formatPrefix, parseInterfaceAddress, prefixAround } from "../../ip/prefix.ts";
import { workloadEndpointName } from "../../model/workload-endpoint-name.ts";
import { FieldReader, type Fields, present } from "./field-reader.ts";
import { nameOfAddress, nameOfCidr, nameWithoutDots, normalName, profileName, qualifiedName } from "./former-names.ts";
import { convertRules, convertSelector, FORMER_NAMESPACE_LABEL, protocolName } from "./former-rules.ts";

interface Parts {
  readonly metadata: FieldReader;
  readonly spec: FieldReader;
  readonly problems: string[];
}

interface Converted {
  readonly kind: string;
  readonly metadata: Fields;
  readonly spec: Fields;
}

/** By the name of the v1 kind in lower case. */
const FORMER_KINDS: ReadonlyMap<string, (parts: Parts) => Converted> = new Map([
  ["ippool", pool],
  ["node", node],
  ["bgppeer", bgpPeer],
  ["hostendpoint", hostEndpoint],
  ["workloadendpoint", workloadEndpoint],
  ["profile", profile],
  ["policy", policy],
]);

export function isFormerKind(kind: string): boolean {
  return FORMER_KINDS.has(kind.toLowerCase());
}

export interface Conversion {
  readonly resource: Fields;
  readonly problems: readonly string[];
}

export function convertFormer(document: Fields): Conversion {
  const problems: string[] = [];
  const whole = new FieldReader(document, "", problems);
  whole.any("apiVersion", "kind");
  const kind = String(document["kind"]).toLowerCase();
  const metadata = whole.object("metadata") ?? new FieldReader({}, "metadata", problems);
  const spec = whole.object("spec") ?? new FieldReader({}, "spec", problems);
  const converted = FORMER_KINDS.get(kind)?.({ metadata, spec, problems });
  for (const reader of [whole, metadata, spec]) reader.end();
  return { resource: { apiVersion: API_VERSION, ...converted }, problems };
}

function pool({ metadata, spec, problems }: Parts): Converted {
  const given = metadata.required("cidr");
  const read = parseInterfaceAddress(given);
  const cidr = read === undefined ? given : formatPrefix(prefixAround(read.address, read.length));
  if (read === undefined) problems.push(`metadata.cidr: "${given}" is not a CIDR`);
  const ipip = spec.object("ipip");
  const [isEnabled, mode] = [ipip?.any("enabled") === true, ipip?.text("mode")?.toLowerCase()];
  ipip?.end();
  return {
    kind: "IPPool",
    metadata: { name: nameOfCidr(cidr) },
    spec: present({
      cidr,
      ipipMode: isEnabled ? (mode === "cross-subnet" ? "CrossSubnet" : "Always") : "Never",
      natOutgoing: spec.any("nat-outgoing", "natOutgoing"),
      disabled: spec.any("disabled"),
    }),
  };
}

function node({ metadata, spec }: Parts): Converted {
  const bgp = spec.object("bgp");
  const converted =
    bgp &&
    present({
      asNumber: bgp.any("asNumber"),
      ipv4Address: bgp.text("ipv4Address"),
      ipv6Address: bgp.text("ipv6Address"),
    });
  bgp?.end();
  return {
    kind: "Node",
    metadata: present({ name: normalName(metadata.required("name")), labels: labels(metadata) }),
    spec: present({ bgp: converted }),
  };
}

function bgpPeer({ metadata, spec, problems }: Parts): Converted {
  const [peerIP, scope, nodeName] = [metadata.required("peerIP"), metadata.required("scope"), metadata.text("node")];
  const address = parseAddress(peerIP);
  if (address === undefined) problems.push(`metadata.peerIP: "${peerIP}" is not an address`);
  if (scope !== "global" && scope !== "node") metadata.refuseValue("scope", "use global or node");
  if ((scope === "node") !== (nodeName !== undefined && nodeName !== "")) {
    problems.push(`metadata.node: must be given if and only if the scope is "node"`);
  }
  const name = address === undefined ? peerIP : nameOfAddress(address);
  const ofNode = nodeName === undefined || nodeName === "" ? undefined : normalName(nodeName);
  return {
    kind: "BGPPeer",
    metadata: { name: ofNode === undefined ? name : `${ofNode}.${name}` },
    spec: present({ peerIP, asNumber: spec.any("asNumber"), node: ofNode }),
  };
}

function hostEndpoint({ metadata, spec }: Parts): Converted {
  const nodeName = normalName(metadata.required("node"));
  return {
    kind: "HostEndpoint",
    metadata: present({ name: `${nodeName}.${qualifiedName(metadata.required("name"))}`, labels: labels(metadata) }),
    spec: present({
      node: nodeName,
      interfaceName: spec.text("interfaceName"),
      expectedIPs: spec.texts("expectedIPs"),
      profiles: spec.texts("profiles")?.map(profileName),
      ports: ports(spec),
    }),
  };
}

function workloadEndpoint({ metadata, spec, problems }: Parts): Converted {
  const [orchestrator, workload] = [metadata.required("orchestrator"), metadata.required("workload")];
  const [nodeName, endpoint] = [normalName(metadata.required("node")), qualifiedName(metadata.required("name"))];
  const instance = metadata.text("activeInstanceID");
  const dot = workload.indexOf(".");
  const isPod = orchestrator === "k8s";
  if (isPod && dot <= 0) problems.push(`metadata.workload: "${workload}" is not NAMESPACE.POD`);
  const pod = isPod ? workload.slice(dot + 1) : undefined;
  const container = orchestrator === "cni" ? workload : isPod ? instance : undefined;
  const other =
    isPod || orchestrator === "cni"
      ? undefined
      : orchestrator === "libnetwork"
        ? "libnetwork"
        : qualifiedName(workload);
  const named = workloadEndpointName({
    node: nodeName,
    orchestrator,
    workload: pod ?? container ?? other ?? "",
    endpoint,
  });
  if (!named.ok) problems.push(`metadata: cannot be named: ${named.field}: ${named.reason}`);
  return {
    kind: "WorkloadEndpoint",
    metadata: present({
      name: named.ok ? named.name : "",
      namespace: isPod ? workload.slice(0, Math.max(dot, 0)) : "default",
      labels: labels(metadata),
    }),
    spec: present({
      orchestrator,
      node: nodeName,
      pod,
      containerID: container,
      workload: other,
      endpoint,
      ipNetworks: spec.texts("ipNetworks"),
      ipNATs: spec.list("ipNATs"),
      ipv4Gateway: spec.text("ipv4Gateway"),
      ipv6Gateway: spec.text("ipv6Gateway"),
      profiles: spec.texts("profiles")?.map(profileName),
      interfaceName: spec.text("interfaceName"),
      mac: spec.text("mac"),
      ports: ports(spec),
    }),
  };
}

function profile({ metadata, spec }: Parts): Converted {
  const tags = metadata.texts("tags") ?? [];
  const toApply = { ...labels(metadata), ...Object.fromEntries(tags.map((tag) => [tag, ""])) };
  return {
    kind: "Profile",
    metadata: { name: profileName(metadata.required("name")) },
    spec: present({
      labelsToApply: Object.keys(toApply).length === 0 ? undefined : toApply,
      ingress: convertRules(spec, "ingress"),
      egress: convertRules(spec, "egress"),
    }),
  };
}

function policy({ metadata, spec }: Parts): Converted {
  const [ingress, egress] = [convertRules(spec, "ingress"), convertRules(spec, "egress")];
  const [isUntracked, isPreDnat] = [spec.any("doNotTrack") === true, spec.any("preDNAT") === true];
  const appliesOnForward = spec.any("applyOnForward") === true || isUntracked || isPreDnat;
  const selector = spec.text("selector");
  return {
    kind: "GlobalNetworkPolicy",
    metadata: present({ name: nameWithoutDots(metadata.required("name")), annotations: metadata.any("annotations") }),
    spec: present({
      order: spec.any("order"),
      selector: selector === undefined ? undefined : convertSelector(selector),
      types: policyTypes(spec, { ingress, egress }),
      ingress,
      egress,
      doNotTrack: isUntracked || undefined,
      preDNAT: isPreDnat || undefined,
      applyOnForward: appliesOnForward || undefined,
    }),
  };
}

interface Rules {
  readonly ingress: readonly Fields[] | undefined;
  readonly egress: readonly Fields[] | undefined;
}

/** Without types, v1 derived them from the rules. */
function policyTypes(spec: FieldReader, { ingress = [], egress = [] }: Rules): readonly string[] {
  const given = spec.texts("types") ?? [];
  if (given.length > 0) return given.map((type) => `${type.charAt(0).toUpperCase()}${type.slice(1).toLowerCase()}`);
  if (egress.length === 0) return ["Ingress"];
  return ingress.length === 0 ? ["Egress"] : ["Ingress", "Egress"];
}

function labels(metadata: FieldReader): Fields | undefined {
  const given = metadata.any("labels");
  if (given === undefined || typeof given !== "object") return undefined;
  return Object.fromEntries(
    Object.entries(given ?? {}).map(([name, value]) => [
      name === FORMER_NAMESPACE_LABEL ? `${identity.labelPrefix}namespace` : name,
      value,
    ]),
  );
}

function ports(spec: FieldReader): readonly Fields[] | undefined {
  return spec.objects("ports")?.map((port) => {
    const converted = present({
      name: port.text("name"),
      protocol: protocolName(port.any("protocol")),
      port: port.any("port"),
    });
    port.end();
    return converted;
  });
}
