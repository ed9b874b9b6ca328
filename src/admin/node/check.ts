import { findInstalledNetwork } from "../../config/installed-network.ts";
import { kubeAccess } from "../../config/kube-access.ts";
import { counted } from "../../counted.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import { describeDrop, describePartialDrop, remedyOf } from "../../firewall/forward-chains.ts";
import type { Family } from "../../ip/address.ts";
import { readPolicy } from "../../policy/read-resources.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, type Given, wantsJson } from "../command.ts";
import { choiceOf, withDatastore } from "../datastore/open.ts";
import { paint } from "../paint.ts";
import { type AgentCircumstances, agentFindings, NO_DEMAND, policyDemand } from "./agent-findings.ts";
import type { Finding } from "./finding.ts";
import type { HostFacts } from "./host-facts.ts";
import { nameOfNode } from "./node-name.ts";
import { ownTableFindings, type SwitchFacts } from "./own-table-findings.ts";

export const nodeCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Check whether this host forwards the packets of pods",
  description: [
    "Runs on the node, as root. Checks IP forwarding, looks for firewall chains that drop forwarded packets, and checks whether",
    "the product's own tables (NAT, floating IPs, spoofing, host ports, policy) and the reverse path filters of pods are in place.",
    "A node agent that no longer runs is a failure, and so is a policy that selects containers of this host while nothing enforces it;",
    "the datastore is read for that only if this host has no policy table.",
    "Reports each problem with the commands that fix it; changes nothing. The exit code is 1 if a check has failed.",
  ].join("\n"),
  needsDatastore: true,
  versionCheck: "none",
  examples: [
    { command: "node check", does: "Check this host" },
    { command: "node check -o json", does: "Check it in a script" },
  ],
  async run(context, given) {
    const findings = await checkNode(context, given);
    const ok = findings.every(({ state }) => state !== "failed");
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ ok, findings }, undefined, 2)}\n`);
    else print(findings, context);
    return ok ? EXIT_OK : EXIT_FAILED;
  },
};

async function checkNode(context: Context, given: Given): Promise<readonly Finding[]> {
  const facts = await context.readHostFacts();
  const circumstances = await circumstancesOf(context, given);
  const isDemandKnown = facts.hasPolicyTable || !circumstances.isDatastoreKnown;
  return checkFacts(facts, {
    ...circumstances,
    demand: isDemandKnown ? NO_DEMAND : await readDemand(context, given),
  });
}

/** All findings about a host. */
export function checkFacts(facts: HostFacts, circumstances: AgentCircumstances & SwitchFacts): readonly Finding[] {
  const { allowsFurtherSources } = circumstances;
  const switches = allowsFurtherSources === undefined ? {} : { allowsFurtherSources };
  return [...findingsOf({ ...facts, ...switches }), ...agentFindings(facts, circumstances)];
}

interface Circumstances extends Omit<AgentCircumstances, "demand">, SwitchFacts {
  /** Otherwise it would be the usual etcd, which nobody has named. */
  readonly isDatastoreKnown: boolean;
}

/** What the installed network config says; one that cannot be read is reported by `config check`. */
export async function circumstancesOf(context: Context, given: Given): Promise<Circumstances> {
  const network = await findInstalledNetwork(context).catch(() => undefined);
  if (network === undefined)
    return { hasNetwork: false, isPolicyRequired: false, isDatastoreKnown: await isDatastoreChosen(context, given) };
  const { config } = network.decoded;
  return {
    hasNetwork: true,
    isPolicyRequired: config.policyType !== undefined,
    allowsFurtherSources: config.features.allowedSourcePrefixes,
    isDatastoreKnown: true,
    ...(kubeAccess(config) === undefined ? {} : { podOfNode: await nameOfNode(context, given) }),
  };
}

async function isDatastoreChosen(context: Context, given: Given): Promise<boolean> {
  return choiceOf(context, given).then(
    ({ isDefault }) => !isDefault,
    () => true,
  );
}

async function readDemand(context: Context, given: Given): Promise<AgentCircumstances["demand"]> {
  try {
    const node = await nameOfNode(context, given);
    return await withDatastore(context, given, async (store) =>
      policyDemand((await readPolicy(store)).resources, node),
    );
  } catch (failure) {
    context.signal.throwIfAborted();
    // The embedded datastore of a host without any record.
    if (failure instanceof PluginError && isAbsence(failure.cause)) return NO_DEMAND;
    return { unknown: describeFailure(failure) };
  }
}

function isAbsence(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}

export function findingsOf(facts: HostFacts & SwitchFacts): readonly Finding[] {
  const { droppingChains, partlyDroppingChains, hasLegacyFilter } = facts;
  return [
    forwardingFinding(4, facts, "net.ipv4.ip_forward"),
    forwardingFinding(6, facts, "net.ipv6.conf.all.forwarding"),
    ...(droppingChains.length === 0
      ? [{ check: "firewall", state: "ok", message: "no nftables chain drops all forwarded packets" } as const]
      : droppingChains.map(
          (chain): Finding => ({
            check: "firewall",
            state: "failed",
            message: describeDrop(chain),
            remedy: remedyOf(chain),
          }),
        )),
    ...partlyDroppingChains.map(
      (chain): Finding => ({
        check: "firewall",
        state: "warning",
        message: describePartialDrop(chain),
        remedy: `nft list table ${chain.table.family} ${chain.table.name}`,
      }),
    ),
    ...(hasLegacyFilter
      ? [
          {
            check: "firewall",
            state: "warning",
            message: "iptables-legacy has a filter table, which this check cannot read",
            remedy: "iptables-legacy -S FORWARD",
          } as const,
        ]
      : []),
    ...ownTableFindings(facts),
  ];
}

/** ADD of a pod switches it on: with pods, another program has switched it off. */
function forwardingFinding(family: Family, { forwarding, podLinks }: HostFacts, sysctl: string): Finding {
  const check = `IPv${family} forwarding`;
  if (forwarding[`ipv${family}`]) return { check, state: "ok", message: "on" };
  const concerned = podLinks.filter(({ families }) => families.includes(family)).length;
  if (concerned === 0) {
    return { check, state: "ok", message: `off, and not needed: no container here has an IPv${family} address` };
  }
  const message = `off: packets of ${counted(concerned, "container")} are not forwarded`;
  return { check, state: "failed", message, remedy: `sysctl -w ${sysctl}=1` };
}

function print(findings: readonly Finding[], context: Context): void {
  const { green, red, yellow } = paint(context);
  const color = { ok: green, warning: yellow, failed: red };
  for (const { check, state, message, remedy } of findings) {
    context.stdout(`${color[state](state.padEnd(7))} ${check.padEnd(16)} ${message}\n`);
    if (remedy !== undefined) context.stdout(`${" ".repeat(25)}run: ${remedy}\n`);
  }
}
