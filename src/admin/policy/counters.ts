import { listed } from "../../counted.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import { findKind, GLOBAL_NETWORK_POLICY, NETWORK_POLICY } from "../../model/kinds.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { originTitle, originWords, type RuleOrigin, readRuleComment } from "../../policy/table/rule-comment.ts";
import { quoted } from "../../quote.ts";
import { nodeOrHostName } from "../host/node-name.ts";
import { kindWithAlias } from "../kinds/aliases.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host, PolicyTable } from "../main/context.ts";
import { USUAL_NAMESPACE } from "../resources/options.ts";
import { type Page, stdoutPage } from "../terminal/page.ts";
import { formatTable } from "../terminal/table.ts";
import type { InterfacesOfChains, PolicyCounts } from "./chain-interfaces.ts";
import { titleOf, workloadsNamed } from "./explain/peer.ts";
import { withPeerNames } from "./peer-names.ts";

export async function run(context: DatastoreAccess & Host & PolicyTable & Clock, given: Given): Promise<ExitCode> {
  const [wanted, ...more] = given.operands;
  if (more.length > 0) throw new UsageError(`Give one policy at most: got ${given.operands.map(quoted).join(", ")}`);
  const read = await context.readPolicyCounts();
  if (read === undefined) {
    context.stderr(noPolicyTable());
    return EXIT_FAILED;
  }
  const names = await knownNames(context, given, read);
  const all = countedRules(read, names.ofInterface);
  const filter = filterOf(all, names, { wanted, forWhom: given.values.get("for") });
  const hasDropped = given.switches.has("dropped");
  const rows = all.filter((row) => filter.isWanted(row) && (hasDropped ? isDrop(row) : matters(row, given.switches)));
  if (wantsJson(given))
    context.stdout(`${JSON.stringify({ rules: rows.map(({ title: _, ...row }) => row) }, undefined, 2)}\n`);
  else if (rows.length > 0) context.stdout(tableOf(rows, stdoutPage(context)));
  if (filter.isOfEndpoint && !wantsJson(given) && rows.some(({ endpoints }) => endpoints.length > 1))
    context.stderr("Note: a rule counts packets of all endpoints in its row.\n");
  if (rows.length > 0) return EXIT_OK;
  if (filter.missing !== undefined && !hasDropped) {
    context.stderr(filter.missing);
    return EXIT_FAILED;
  }
  if (!wantsJson(given)) context.stderr(hasDropped ? "No packet was dropped.\n" : "No rule has counted a packet.\n");
  return EXIT_OK;
}

interface Wish {
  isWanted(row: CountedRule): boolean;
  readonly isOfEndpoint: boolean;
  /** What to say if there is no row. */
  readonly missing?: string;
}

/** A policy and a container may have the same name: then the operand is the policy, and `--for` the container. */
function filterOf(
  all: readonly CountedRule[],
  names: KnownNames,
  { wanted, forWhom }: { readonly wanted: string | undefined; readonly forWhom: string | undefined },
): Wish {
  const meant = wanted === undefined ? [] : policiesMeant(wanted);
  const name =
    meant.find((each) => all.some(({ policy }) => policy === each)) ??
    meant.find((each) => names.policies?.includes(each) === true);
  const isOfPolicy = ({ policy }: CountedRule) => wanted === undefined || (name !== undefined && policy === name);
  const isPolicy = wanted === undefined || name !== undefined;
  const word = forWhom ?? (isPolicy ? undefined : wanted);
  const titles = word === undefined ? [] : names.titlesOf(word);
  if (word !== undefined && titles.length > 0) {
    const isEvaluated = ({ endpoints }: CountedRule) => endpoints.some((name) => titles.includes(name));
    return {
      isWanted: (row) => isEvaluated(row) && (forWhom === undefined || isOfPolicy(row)),
      isOfEndpoint: true,
      missing: `No rule is evaluated for ${quoted(word)} on this node\n`,
    };
  }
  if (forWhom !== undefined)
    throw new PluginError("resource-missing", `Cannot find workload or host endpoint ${quoted(forWhom)} on this node`, {
      details: `use NAMESPACE/POD, the ID or name of a container, or hostendpoint/NAME`,
    });
  if (wanted === undefined) return { isWanted: () => true, isOfEndpoint: false };
  if (name === undefined && names.policies !== undefined) throw unknownName(wanted, names);
  const why = names.policies === undefined ? ", or does not exist; nor has a container of this node this name" : "";
  const missing = `No rule of policy ${quoted(name ?? wanted)} is in the kernel: it selects no workload of this node${why}\n`;
  return { isWanted: isOfPolicy, isOfEndpoint: false, missing };
}

/** As rules name policies: `NAMESPACE/NAME`, or the name of a global one. The user may also write its kind, and no namespace. */
function policiesMeant(word: string): readonly string[] {
  const [first = "", ...path] = word.split("/");
  if (path.length === 0) return [word, `${USUAL_NAMESPACE}/${word}`];
  const kind = (findKind(ADMIN_KINDS, first) ?? kindWithAlias(first))?.kind;
  const [name = "", ...rest] = path.toReversed();
  // A namespace may have the name of a kind.
  if (kind === GLOBAL_NETWORK_POLICY.kind) return [word, path.join("/")];
  return kind === NETWORK_POLICY.kind ? [word, `${rest[0] ?? USUAL_NAMESPACE}/${name}`] : [word];
}

function unknownName(word: string, { policies = [], titles }: KnownNames): PluginError {
  const usual = policies.flatMap((each) => (each.startsWith(IN_USUAL) ? [each.slice(IN_USUAL.length)] : []));
  const nearest = nearestName(word, [...usual, ...policies, ...titles]);
  return new PluginError(
    "resource-missing",
    `Cannot find policy ${quoted(word)}: it does not exist, nor has a container of this node this name`,
    nearest === undefined ? {} : { details: `did you mean "${nearest}"?` },
  );
}

const IN_USUAL = `${USUAL_NAMESPACE}/`;

export function noPolicyTable(): string {
  const agent = identity.nodeAgent;
  return `This host has no policy table: there is no policy, or ${agent} does not run (systemctl status ${agent})\n`;
}

interface KnownNames {
  /** As rules name them; `undefined` if the datastore was not read. */
  readonly policies: readonly string[] | undefined;
  /** Of the endpoints of this node. */
  readonly titles: readonly string[];
  /** The name of the interface itself if it is of no known endpoint. */
  ofInterface(interfaceName: string): string;
  /** As in the column ENDPOINTS: the endpoints of this node that the user may mean. */
  titlesOf(word: string): readonly string[];
}

async function knownNames(
  context: DatastoreAccess & Host & Clock,
  given: Given,
  { interfacesOf }: PolicyCounts,
): Promise<KnownNames> {
  if (interfacesOf.size === 0 && given.operands.length === 0)
    return { policies: undefined, titles: [], ofInterface: (name) => name, titlesOf: () => [] };
  const node = await nodeOrHostName(context, given);
  const addresses = await context.hostAddresses().catch(() => []);
  const interfaces = Array.from(
    Map.groupBy(addresses, ({ link }) => link.name),
    ([name, own]) => ({ name, addresses: own.map(({ address }) => address) }),
  );
  return withPeerNames({ context, given, isNeeded: false }, async (names) => {
    const known = names.ofInterfaces(node, interfaces);
    const here = new Set(known.values());
    return {
      policies: names.policies,
      titles: [...here],
      ofInterface: (name) => known.get(name) ?? `interface ${name}`,
      titlesOf: (word) =>
        [word, ...workloadsNamed(word, names.known.endpoints).map(titleOf)].filter((title) => here.has(title)),
    };
  });
}

/** A rule of a policy, or another one that decides; both families together. */
interface CountedRule {
  readonly policy?: string;
  /** At the end of the rules of its policies. */
  readonly tier?: string;
  readonly direction?: string;
  /** As in `spec.ingress`. */
  readonly rule?: number;
  readonly decidedBy: string;
  /** The same, in few words. */
  readonly title: string;
  readonly action: string;
  /** Of this node: those that it is evaluated for. */
  readonly endpoints: readonly string[];
  readonly packets: number;
  readonly bytes: number;
}

const ACTION: Readonly<Record<string, string | undefined>> = { accept: "Allow", drop: "Deny", goto: "Pass" };

/** In the order of the policies' names and of their rules. */
function countedRules(
  { counts, interfacesOf }: PolicyCounts,
  nameOf: (interfaceName: string) => string,
): readonly CountedRule[] {
  const rules = new Map<string, CountedRule>();
  for (const count of counts) {
    const { comment = "", verdict = "", packets, bytes } = count;
    const origin = readRuleComment(comment);
    const endpoints = namesAt(count, interfacesOf, nameOf);
    // The end of a tier is another one for each list of policies.
    const key = `${comment} ${verdict} ${origin.kind === "policy" ? "" : endpoints.join()}`;
    const before = rules.get(key);
    rules.set(key, {
      ...("direction" in origin ? placeOf(origin) : {}),
      decidedBy: originWords(origin),
      title: originTitle(origin),
      action: ACTION[verdict] ?? "Log",
      endpoints: [...new Set([...(before?.endpoints ?? []), ...endpoints])].sort(),
      packets: packets + (before?.packets ?? 0),
      bytes: bytes + (before?.bytes ?? 0),
    });
  }
  return [...rules.values()].toSorted((left, right) => compareTexts(sortKey(left), sortKey(right)));
}

function placeOf(origin: RuleOrigin & { readonly direction: string }): Partial<CountedRule> {
  const { direction } = origin;
  if (origin.kind === "policy") return { policy: origin.policy, direction, rule: origin.rule };
  return origin.kind === "tier" ? { tier: origin.tier, direction } : { direction };
}

function namesAt(
  { chain }: RuleCount,
  interfacesOf: InterfacesOfChains,
  nameOf: (interfaceName: string) => string,
): readonly string[] {
  return (interfacesOf.get(chain) ?? []).map(nameOf).sort();
}

/** Policies first. */
function sortKey({ policy, direction = "", rule = 0, decidedBy, endpoints }: CountedRule): string {
  if (policy === undefined) return `1 ${decidedBy} ${endpoints.join()}`;
  return `0 ${policy} ${direction} ${String(rule).padStart(6, "0")}`;
}

function compareTexts(left: string, right: string): number {
  return left < right ? -1 : left === right ? 0 : 1;
}

function isDrop({ action, packets }: CountedRule): boolean {
  return action === "Deny" && packets > 0;
}

function matters({ policy, packets }: CountedRule, switches: ReadonlySet<string>): boolean {
  return policy !== undefined || packets > 0 || switches.has("all");
}

function tableOf(rows: readonly CountedRule[], page: Page): string {
  return formatTable(
    // On a narrow terminal the last ones are left out.
    ["POLICY", "PACKETS", "ACTION", "DIRECTION", "RULE", "BYTES", "ENDPOINTS"],
    rows.map(({ title, direction = "", rule, action, packets, bytes, endpoints }) => [
      title,
      String(packets),
      action,
      direction,
      rule === undefined ? "" : String(rule + 1),
      String(bytes),
      listed(endpoints),
    ]),
    page,
  );
}
