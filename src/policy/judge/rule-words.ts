/** A rule in words: `allow TCP from endpoints with app == 'shop' in namespace "default" to port 80`. Pure. */
import { IS_NODE, OF_NODE } from "../../model/node-members.ts";
import type { EntityRule, PolicyRule } from "../../model/policy-rule.ts";
import { protocolNumber } from "../../model/protocols.ts";
import { withNamedFamilies } from "../named-families.ts";

const NAMES: Readonly<Record<number, string>> = {
  1: "ICMP",
  6: "TCP",
  17: "UDP",
  58: "ICMPv6",
  132: "SCTP",
  136: "UDPLite",
};

const ACTIONS = { Allow: "allow", Deny: "deny", Log: "log", Pass: "pass to the next tier:" } as const;

/** `namespace`: that of the rule's policy, which its selectors are restricted to. */
export function ruleWords(written: PolicyRule, namespace: string | undefined): string {
  const rule = withNamedFamilies(written);
  const from = peerWords(rule.source ?? {}, namespace);
  const to = peerWords(rule.destination ?? {}, namespace);
  return [
    ACTIONS[rule.action],
    packetWords(rule),
    ...(from === undefined ? [] : ["from", from]),
    ...(to === undefined ? [] : ["to", to]),
  ].join(" ");
}

export function protocolWords(protocol: number | string): string {
  const number = protocolNumber(protocol);
  return (number === undefined ? undefined : NAMES[number]) ?? `protocol ${protocol}`;
}

function packetWords({ ipVersion, protocol, notProtocol, icmp, notICMP, http }: PolicyRule): string {
  const family = ipVersion === undefined ? [] : [`IPv${ipVersion}`];
  if (http !== undefined) return [...family, httpWords(http)].join(" ");
  const what = [
    ...(protocol === undefined ? [] : [protocolWords(protocol)]),
    ...(notProtocol === undefined ? [] : [`every protocol except ${protocolWords(notProtocol)}`]),
    ...(icmp === undefined ? [] : [icmpWords(icmp)]),
    ...(notICMP === undefined ? [] : [`except ${icmpWords(notICMP)}`]),
  ];
  return [...family, ...(what.length === 0 ? ["everything"] : what)].join(" ");
}

function httpWords({ methods = [], paths = [] }: NonNullable<PolicyRule["http"]>): string {
  const isAnyMethod = methods.length === 0 || methods.includes("*");
  const wanted = paths.map(({ exact, prefix }) =>
    exact === undefined ? `beginning with "${prefix ?? ""}"` : `"${exact}"`,
  );
  const criteria = [
    ...(isAnyMethod ? [] : [`method ${alternatives(methods)}`]),
    ...(wanted.length === 0 ? [] : [`path ${alternatives(wanted)}`]),
  ];
  return criteria.length === 0 ? "HTTP requests" : `HTTP requests with ${criteria.join(" and ")}`;
}

function icmpWords({ type, code }: NonNullable<PolicyRule["icmp"]>): string {
  return `type ${type ?? "any"}${code === undefined ? "" : ` code ${code}`}`;
}

function peerWords(entity: EntityRule, namespace: string | undefined): string | undefined {
  const { nets = [], notNets = [], ports = [], notPorts = [], services } = entity;
  const parts = [
    ...endpointWords(entity, namespace),
    ...(services === undefined ? [] : [`service "${services.namespace ?? namespace ?? ""}/${services.name}"`]),
    ...(nets.length === 0 ? [] : [alternatives(nets)]),
    ...(notNets.length === 0 ? [] : [`addresses except ${alternatives(notNets)}`]),
    ...(ports.length === 0 ? [] : [`port ${portWords(ports)}`]),
    ...(notPorts.length === 0 ? [] : [`ports except ${portWords(notPorts)}`]),
  ];
  return parts.length === 0 ? undefined : parts.join(", ");
}

function endpointWords(entity: EntityRule, namespace: string | undefined): readonly string[] {
  const { selector = "", notSelector = "", namespaceSelector = "", serviceAccounts } = entity;
  const { names = [], selector: accounts = "" } = serviceAccounts ?? {};
  if (selector.startsWith(IS_NODE)) return [nodeWords(selector)];
  const isGiven = [selector, namespaceSelector, accounts].some((text) => text.trim() !== "") || names.length > 0;
  const isRestricted = isGiven || (notSelector.trim() !== "" && namespace !== undefined);
  const selected = [
    selector.trim() === "" || selector.trim() === "all()" ? "endpoints" : `endpoints with ${selector}`,
    ...(names.length === 0 ? [] : [`of service account ${alternatives(names)}`]),
    ...(accounts.trim() === "" ? [] : [`of service accounts with ${accounts}`]),
    ...namespaceWords(namespaceSelector.trim(), namespace),
  ].join(" ");
  const excluded = notSelector.trim() === "" ? [] : [`everything except endpoints with ${notSelector}`];
  return [...(isRestricted ? [selected] : []), ...excluded];
}

/** Of a converted ClusterNetworkPolicy. */
function nodeWords(selector: string): string {
  const labels = selector.slice(IS_NODE.length).replace(/^ && /, "").replaceAll(OF_NODE, "");
  return labels === "" ? "nodes" : `nodes with ${labels}`;
}

function namespaceWords(selector: string, namespace: string | undefined): readonly string[] {
  if (selector === "all()") return ["in any namespace"];
  if (selector === "global()") return ["outside all namespaces"];
  if (selector !== "") return [`in namespaces with ${selector}`];
  return namespace === undefined ? [] : [`in namespace "${namespace}"`];
}

function portWords(ports: readonly (number | string)[]): string {
  return alternatives(
    ports.map((port) => (/^\d+(:\d+)?$/.test(`${port}`) ? `${port}`.replace(":", "-") : `"${port}"`)),
  );
}

function alternatives(texts: readonly string[]): string {
  return texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} or ${texts.at(-1)}`;
}
