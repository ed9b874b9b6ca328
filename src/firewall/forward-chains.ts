/**
 * Chains of other firewalls that drop forwarded packets: those of pods too. A
 * packet needs the consent of every table, so nothing in our own tables can
 * override them; all we can do is name the chain and what to do about it.
 */
import { counted } from "../counted.ts";
import { identity } from "../identity.ts";
import type { Family } from "../ip/address.ts";
import type { NetlinkSocket } from "../linux/netlink-socket.ts";
import type { Expression } from "../linux/nftables/expression.ts";
import { findChain, listAllChains, listRules } from "../linux/nftables/read.ts";
import type { NftChain, NftFamily, NftRule, TableReference } from "../linux/nftables/ruleset.ts";

/** A base chain that drops forwarded packets and has no rule about our interfaces. */
export interface DroppingChain {
  readonly table: TableReference;
  readonly chain: string;
}

const FIREWALLD: TableReference = { family: "inet", name: "firewalld" };

/** Where the usual firewalls have it. Asking by name costs the same however many chains the host has. */
const USUAL_CHAINS: readonly DroppingChain[] = [
  // iptables-nft: Docker, ufw, orchestrators
  { table: { family: "ip", name: "filter" }, chain: "FORWARD" },
  { table: { family: "ip6", name: "filter" }, chain: "FORWARD" },
  // /etc/nftables.conf
  { table: { family: "inet", name: "filter" }, chain: "forward" },
  { table: FIREWALLD, chain: "filter_FORWARD" },
];

/** For ADD: the usual chains only. */
export function findUsualDrops(socket: NetlinkSocket, families: readonly Family[]): readonly DroppingChain[] {
  const candidates = USUAL_CHAINS.filter(({ table }) => concerns(table.family, families));
  return candidates.filter(({ table, chain }) => {
    const found = findChain(socket, table, chain);
    // Rules are read only if they can matter: firewalld rejects by its last rule, the others by their policy.
    if (found === undefined || (table !== FIREWALLD && found.base?.policy !== "drop")) return false;
    return drops(socket, table, found);
  });
}

/** For a thorough check: every chain of the host. */
export function findAllDrops(socket: NetlinkSocket): readonly DroppingChain[] {
  return listAllChains(socket)
    .filter(({ table, chain }) => isForward(chain) && concerns(table.family, [4, 6]))
    .filter(({ table, chain }) => drops(socket, table, chain))
    .map(({ table, chain }) => ({ table, chain: chain.name }));
}

/** A base chain that drops some forwarded packets, by itself or in chains that it jumps to, and has no rule about our interfaces. */
export interface PartlyDroppingChain extends DroppingChain {
  /** How many rules drop or reject. */
  readonly rules: number;
}

const OWN_TABLES: ReadonlySet<string> = new Set([
  identity.policyTable,
  identity.guardTable,
  identity.natTable,
  identity.floatingTable,
  identity.hostPortTable,
]);

/** For a thorough check: chains of other programs that drop some forwarded packets, not all. */
export function findPartialDrops(socket: NetlinkSocket): readonly PartlyDroppingChain[] {
  return listAllChains(socket)
    .filter(({ table, chain }) => isForward(chain) && concerns(table.family, [4, 6]) && !OWN_TABLES.has(table.name))
    .filter(({ table, chain }) => !drops(socket, table, chain))
    .map(({ table, chain }) => ({ table, chain: chain.name, rules: countRefusals(socket, table, chain.name) }))
    .filter(({ rules }) => rules > 0);
}

/** 0 if a rule is about our interfaces. */
function countRefusals(socket: NetlinkSocket, table: TableReference, first: string): number {
  const seen = new Set([first]);
  let refusals = 0;
  for (const chain of seen) {
    const rules = listRules(socket, table, chain);
    if (namesOurLinks(rules)) return 0;
    refusals += rules.filter(({ expressions }) => expressions.some(isRefusal)).length;
    for (const target of jumpTargets(rules)) seen.add(target);
  }
  return refusals;
}

export function describePartialDrop({ table, chain, rules }: PartlyDroppingChain): string {
  const place = `chain "${chain}" of table ${table.family} "${table.name}"`;
  return `${counted(rules, "rule")} of ${place} and the chains that it jumps to can drop forwarded packets, those of pods too`;
}

/** As a sentence, for a log. */
export function describeDrop({ table, chain }: DroppingChain): string {
  const place = `chain "${chain}" of table ${table.family} "${table.name}"`;
  return `The host's firewall drops forwarded packets, and with them those of pods: ${place}`;
}

/** Commands that let packets of pods pass. */
export function remedyOf({ table, chain }: DroppingChain): string {
  const prefix = identity.interfacePrefix;
  if (table.name === FIREWALLD.name) {
    return `firewall-cmd --permanent --zone=trusted --add-interface=${prefix}+ && firewall-cmd --reload`;
  }
  if (table.name === "filter" && chain === "FORWARD") {
    const iptables = table.family === "ip6" ? "ip6tables" : "iptables";
    return ["-i", "-o"].map((way) => `${iptables} -I FORWARD ${way} ${prefix}+ -j ACCEPT`).join(" && ");
  }
  const insert = `nft insert rule ${table.family} ${table.name} ${chain}`;
  return ["iifname", "oifname"].map((way) => `${insert} ${way} '"${prefix}*"' accept`).join(" && ");
}

function concerns(table: NftFamily, families: readonly Family[]): boolean {
  if (table === "inet") return true;
  return (table === "ip" && families.includes(4)) || (table === "ip6" && families.includes(6));
}

function isForward({ base }: NftChain): boolean {
  return base?.type === "filter" && base.hook === "forward";
}

function drops(socket: NetlinkSocket, table: TableReference, chain: NftChain): boolean {
  if (!isForward(chain)) return false;
  const rules = listRules(socket, table, chain.name);
  if (chain.base?.policy !== "drop" && !endsWithRefusal(rules)) return false;
  return !namesOurLinks(rules) && !jumpTargets(rules).some((to) => namesOurLinks(listRules(socket, table, to)));
}

function endsWithRefusal(rules: readonly NftRule[]): boolean {
  const last = rules.at(-1)?.expressions.filter(({ kind }) => kind !== "counter") ?? [];
  const [only] = last;
  return last.length === 1 && only !== undefined && isRefusal(only);
}

function isRefusal(expression: Expression): boolean {
  if (expression.kind === "target") return expression.name === "REJECT";
  if (expression.kind === "verdict") return expression.verdict.kind === "drop";
  return expression.kind === "reject";
}

/** Someone thought of them: what the rule does is their decision. */
function namesOurLinks(rules: readonly NftRule[]): boolean {
  return rules.some(({ expressions }) => expressions.some(isOurPrefix));
}

function isOurPrefix(expression: Expression): boolean {
  if (expression.kind !== "compare") return false;
  return new TextDecoder().decode(expression.value).startsWith(identity.interfacePrefix);
}

/** Docker's users put their rules into a chain that FORWARD jumps to. */
function jumpTargets(rules: readonly NftRule[]): readonly string[] {
  return rules.flatMap(({ expressions }) =>
    expressions.flatMap((each) =>
      each.kind === "verdict" && (each.verdict.kind === "jump" || each.verdict.kind === "goto")
        ? [each.verdict.chain]
        : [],
    ),
  );
}
