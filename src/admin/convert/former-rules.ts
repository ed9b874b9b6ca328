/** Rules of v1 policies and profiles -> rules of v3. Pure. */
import { identity } from "../../identity.ts";
import { formatPrefix, parseInterfaceAddress, prefixAround } from "../../ip/prefix.ts";
import { type FieldReader, type Fields, present } from "./field-reader.ts";

export function convertRules(spec: FieldReader, name: "ingress" | "egress"): readonly Fields[] | undefined {
  return spec.objects(name)?.map(convertRule);
}

const ACTIONS: Readonly<Record<string, string>> = {
  "": "Allow",
  allow: "Allow",
  deny: "Deny",
  log: "Log",
  pass: "Pass",
  "next-tier": "Pass",
};

function convertRule(rule: FieldReader): Fields {
  const action = ACTIONS[(rule.text("action") ?? "").toLowerCase()];
  if (action === undefined) rule.refuseValue("action", "use allow, deny, log or pass");
  const converted = present({
    action,
    ipVersion: rule.any("ipVersion"),
    protocol: protocolName(rule.any("protocol")),
    notProtocol: protocolName(rule.any("!protocol", "notProtocol")),
    icmp: icmp(rule.object("icmp")),
    notICMP: icmp(rule.object("!icmp", "notICMP")),
    source: entity(rule.object("source")),
    destination: entity(rule.object("destination")),
  });
  rule.end();
  return converted;
}

const PROTOCOLS: Readonly<Record<string, string>> = {
  tcp: "TCP",
  udp: "UDP",
  icmp: "ICMP",
  icmpv6: "ICMPv6",
  sctp: "SCTP",
  udplite: "UDPLite",
};

export function protocolName(protocol: unknown): unknown {
  return typeof protocol === "string" ? (PROTOCOLS[protocol.toLowerCase()] ?? protocol) : protocol;
}

function icmp(fields: FieldReader | undefined): Fields | undefined {
  if (fields === undefined) return undefined;
  const converted = present({ type: fields.any("type"), code: fields.any("code") });
  fields.end();
  return converted;
}

/** `undefined` if it has no criteria. */
function entity(fields: FieldReader | undefined): Fields | undefined {
  if (fields === undefined) return undefined;
  const converted = present({
    nets: nets(fields.text("net"), fields.texts("nets")),
    notNets: nets(fields.text("!net", "notNet"), fields.texts("!nets", "notNets")),
    selector: selectorAndTag(fields.text("selector"), fields.text("tag")),
    notSelector: selectorAndTag(fields.text("!selector", "notSelector"), fields.text("!tag", "notTag")),
    ports: fields.list("ports"),
    notPorts: fields.list("!ports", "notPorts"),
  });
  fields.end();
  return Object.keys(converted).length === 0 ? undefined : converted;
}

/** Without host bits, which v1 accepted. */
function nets(one: string | undefined, many: readonly string[] | undefined): readonly string[] | undefined {
  const all = [...(one === undefined ? [] : [one]), ...(many ?? [])];
  if (all.length === 0) return undefined;
  return all.map((text) => {
    const read = parseInterfaceAddress(text);
    return read === undefined ? text : formatPrefix(prefixAround(read.address, read.length));
  });
}

/** Tags are labels with an empty value in v3. */
function selectorAndTag(selector: string | undefined, tag: string | undefined): string | undefined {
  const converted = selector === undefined ? "" : convertSelector(selector);
  if (tag === undefined || tag === "") return converted === "" ? undefined : converted;
  return converted === "" ? `${tag} == ''` : `(${converted}) && ${tag} == ''`;
}

/** The label with the namespace of a pod has another name in v3. */
export function convertSelector(selector: string): string {
  return selector.replaceAll(FORMER_NAMESPACE_LABEL, `${identity.labelPrefix}namespace`);
}

export const FORMER_NAMESPACE_LABEL = `${identity.product}/k8s_ns`;
