/** What BIRD puts into the kernel, and what it sends to and accepts from a peer. */
import { addressBits, type Family } from "../../ip/address.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import type { BgpNetworkMatch, BgpPlan, BgpRule, BgpSession } from "../bgp/plan.ts";
import { block, isSingleWithin, isWithin, quotedText } from "./text.ts";

/** Static routes of what this node announces. */
export const OWN_ROUTES = { 4: "own4", 6: "own6" } as const;

/** Routes of the kernel resolve next hops of peers. Those of the node agent itself are for its own pods. */
export function kernelImport(agentProtocol: number): string {
  return block("import filter", [`if krt_source = ${agentProtocol} then reject;`, "accept;"]);
}

export function kernelExport({ tunnelled }: BgpPlan, family: Family): string {
  return block("export filter", [
    "if source != RTS_BGP then reject;",
    rejectIf(isWithin(tunnelled, family)),
    "accept;",
  ]);
}

/** The functions that the filters of all sessions of a family call. */
export function sharedFunctions(plan: BgpPlan, family: Family): readonly string[] {
  return [
    block(`function is_sent${family}()`, [
      // Routes of interfaces and of other programs on this host.
      `if source != RTS_BGP && proto != "${OWN_ROUTES[family]}" then return false;`,
      returnIf(isWithin(plan.withheld, family), "false"),
      returnIf(isWithin(plan.exported, family), "true"),
      "return false;",
    ]),
    block(`function is_accepted${family}()`, [
      returnIf(isWithin(plan.withheld, family), "false"),
      returnIf(isWithin(plan.accepted, family), "true"),
      "return false;",
    ]),
    block(`function add_communities${family}()`, communitiesOf(plan, family)),
  ];
}

/**
 * Of a node of the mesh nothing is accepted but what its own plan sends: whoever speaks in its place must not lead packets
 * to other destinations astray. All others are judged by the rules that an administrator gives them.
 */
export function importFilter({ kind, importRules, address: { family } }: BgpSession): string {
  const last = kind === "node-to-node mesh" ? [`if is_accepted${family}() then accept;`, "reject;"] : ["accept;"];
  return block("import filter", [...rulesOf(importRules, family), ...last]);
}

/**
 * Blocks of other nodes are sent to routers of another AS too, with this node as next hop. A router that hears of a block
 * from several nodes must prefer the one that has it, or packets may go in a circle: the higher value is the worse one.
 */
const MED_OF_OTHERS = 100;

export function exportFilter(
  session: BgpSession,
  { services, tunnelled }: Pick<BgpPlan, "services" | "tunnelled">,
): string {
  const { exportRules, localAs, peerAs } = session;
  const { family } = session.address;
  const isExternal = localAs !== peerAs;
  const isOwnHop = session.nextHop === "self" || (isExternal && session.nextHop !== "keep");
  const learned = (condition: string | undefined) =>
    isOwnHop && condition !== undefined ? `if source = RTS_BGP && ${condition} then reject;` : undefined;
  return block("export filter", [
    isExternal ? `if source = RTS_BGP && bgp_path.len = 0 then bgp_med = ${MED_OF_OTHERS};` : undefined,
    `add_communities${family}();`,
    ...rulesOf(exportRules, family),
    // kube-proxy drops packets for a Service with externalTrafficPolicy: Local on nodes without an endpoint of it.
    learned(isWithin(services, family)),
    // This node has no route to them: it would send packets for them back to the router.
    learned(isSingleWithin(tunnelled, family)),
    `if is_sent${family}() then accept;`,
    "reject;",
  ]);
}

function communitiesOf({ advertisements }: BgpPlan, family: Family): readonly string[] {
  return advertisements
    .filter(({ prefix, communities }) => prefix.network.family === family && communities.length > 0)
    .map(({ prefix, communities }) =>
      block(
        `if ${isWithin([prefix], family)} then`,
        communities.map((numbers) => {
          const attribute = numbers.length === 2 ? "bgp_community" : "bgp_large_community";
          return `${attribute}.add((${numbers.join(", ")}));`;
        }),
      ),
    );
}

function rulesOf(rules: readonly BgpRule[], family: Family): readonly string[] {
  return rules.flatMap((rule) => {
    const { network, action } = rule;
    // A network of the other family has no route of this session in it.
    const isOfOther = network !== undefined && network.prefix.network.family !== family;
    if (isOfOther && !network.isNegated) return [];
    const conditions = [
      network === undefined || isOfOther ? undefined : networkCondition(network),
      rule.onlyLearned ? "source = RTS_BGP" : undefined,
      rule.interface === undefined ? undefined : `ifname ~ ${quotedText(rule.interface)}`,
    ].filter((condition) => condition !== undefined);
    return [conditions.length === 0 ? `${action};` : `if ${conditions.join(" && ")} then ${action};`];
  });
}

function networkCondition({ prefix, lengths: { from, to }, isNegated }: BgpNetworkMatch): string {
  const most = Math.min(to, addressBits(prefix.network.family));
  const matched = `net ~ [ ${formatPrefix(prefix)}{${Math.max(from, prefix.length)}, ${most}} ]`;
  return isNegated ? `!(${matched})` : matched;
}

function rejectIf(condition: string | undefined): string | undefined {
  return condition && `if ${condition} then reject;`;
}

function returnIf(condition: string | undefined, value: "true" | "false"): string | undefined {
  return condition && `if ${condition} then return ${value};`;
}
