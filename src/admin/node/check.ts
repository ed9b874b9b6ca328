import { policyRequirement } from "../../config/installed-network.ts";
import { kubeAccess } from "../../config/kube-access.ts";
import { counted } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { describeFailure } from "../../errors.ts";
import { describeDrop, describePartialDrop, remedyOf } from "../../firewall/forward-chains.ts";
import type { Family } from "../../ip/address.ts";
import { isMarkOf } from "../../ipam/link-mark.ts";
import { hasPolicies, readPolicy } from "../../policy/read-resources.ts";
import { redact } from "../../redaction.ts";
import { choiceOf, withDatastore, withDatastoreIfAny } from "../datastore/open.ts";
import type { HostFacts } from "../host/facts.ts";
import { nameOfNode, nodeOrHostName } from "../host/node-name.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess, Host, Terminal } from "../main/context.ts";
import { remedyFor } from "../resources/unreadable-remedy.ts";
import { stdoutPage, wrapped } from "../terminal/page.ts";
import { type AgentCircumstances, agentFindings, NO_DEMAND, policyDemand } from "./agent-findings.ts";
import type { Finding } from "./finding.ts";
import { ownTableFindings, type SwitchFacts } from "./own-table-findings.ts";
import { findUnknownContainers, readKnownInterfaces, unknownFindings } from "./unknown-containers.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const findings = await checkNode(context, given);
  const ok = findings.every(({ state }) => state !== "failed");
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ ok, findings }, undefined, 2)}\n`);
  else print(findings, context);
  return ok ? EXIT_OK : EXIT_FAILED;
}

async function checkNode(context: DatastoreAccess & Host & Clock, given: Given): Promise<readonly Finding[]> {
  const facts = await context.readHostFacts();
  const circumstances = await circumstancesOf(context, given);
  // With a table, or if policy is required, the finding does not depend on it.
  const isDecided = facts.hasPolicyTable || circumstances.isPolicyRequired || !circumstances.isDatastoreKnown;
  const findings = checkFacts(facts, {
    ...circumstances,
    demand: isDecided ? NO_DEMAND : await readDemand(context, given, facts),
    unknown: await readUnknown(context, given, { ...facts, network: circumstances.network }),
  });
  return [...findings, ...networkFindings(circumstances)];
}

/** A config that cannot be used: its plugin fails every call, and what it says about policy is not known. */
function networkFindings({ problem }: Circumstances): readonly Finding[] {
  return problem === undefined ? [] : [{ check: "network config", state: "failed", message: problem }];
}

/** Those of a datastore that cannot be read are not known either, but that does not mean that it has lost them. */
export async function readUnknown(
  context: DatastoreAccess & Host & Clock,
  given: Given,
  { podLinks, network }: Pick<HostFacts, "podLinks"> & { readonly network: string | undefined },
): Promise<readonly string[]> {
  const own = podLinks.filter(({ alias = "" }) => network !== undefined && isMarkOf(network, alias));
  if (own.length === 0) return [];
  try {
    const node = await nameOfNode(context, given);
    const read = (store: Datastore) => readKnownInterfaces(store, node).then((found) => ({ found }));
    const records = await withDatastoreIfAny(context, given, read);
    const interfaces = records === undefined ? NO_INTERFACES : records.found;
    return await findUnknownContainers(context, own, { network, interfaces });
  } catch {
    context.signal.throwIfAborted();
    return [];
  }
}

/** The file of an embedded datastore does not exist. */
const NO_INTERFACES: ReadonlySet<string> = new Set();

/** All findings about a host. */
export function checkFacts(
  facts: HostFacts,
  circumstances: AgentCircumstances & SwitchFacts & UnknownContainers,
): readonly Finding[] {
  const { allowsFurtherSources, unknown, podOfNode } = circumstances;
  const switches = allowsFurtherSources === undefined ? {} : { allowsFurtherSources };
  return [
    ...findingsOf({ ...facts, ...switches }),
    ...unknownFindings(unknown, podOfNode !== undefined),
    ...agentFindings(facts, circumstances),
  ];
}

interface UnknownContainers {
  /** The IDs of containers of this host that the datastore does not know. */
  readonly unknown: readonly string[];
}

interface Circumstances extends Omit<AgentCircumstances, "demand">, SwitchFacts {
  /** The name of the installed network. */
  readonly network?: string;
  /** Why its config cannot be used. */
  readonly problem?: string;
  /** Otherwise it would be the usual etcd, which nobody has named. */
  readonly isDatastoreKnown: boolean;
}

/** What the installed network config says; one that cannot be used is a finding of its own. */
export async function circumstancesOf(context: DatastoreAccess & Host, given: Given): Promise<Circumstances> {
  const { network, isPolicyRequired, problem } = await policyRequirement(context);
  if (network === undefined) {
    const isDatastoreKnown = await isDatastoreChosen(context, given);
    const unusable = problem === undefined ? {} : { problem };
    return { hasNetwork: problem !== undefined, isPolicyRequired, isDatastoreKnown, ...unusable };
  }
  const { config } = network.decoded;
  return {
    hasNetwork: true,
    network: config.name,
    isPolicyRequired,
    allowsFurtherSources: config.features.allowedSourcePrefixes,
    isDatastoreKnown: true,
    ...(kubeAccess(config) === undefined ? {} : { podOfNode: await nodeOrHostName(context, given) }),
  };
}

async function isDatastoreChosen(context: DatastoreAccess, given: Given): Promise<boolean> {
  return choiceOf(context, given).then(
    ({ isDefault }) => !isDefault,
    () => true,
  );
}

type Demand = AgentCircumstances["demand"];

async function readDemand(context: DatastoreAccess & Host, given: Given, { podLinks }: HostFacts): Promise<Demand> {
  // A host that has never had a container has no embedded datastore either.
  const open = podLinks.length === 0 ? withDatastoreIfAny : withDatastore;
  try {
    const node = await nameOfNode(context, given);
    return (await open(context, given, (store) => demandIn(store, node))) ?? NO_DEMAND;
  } catch (failure) {
    context.signal.throwIfAborted();
    return { unknown: redact(describeFailure(failure)) };
  }
}

async function demandIn(store: Datastore, node: string): Promise<Demand> {
  if (!(await hasPolicies(store))) return NO_DEMAND;
  const { resources, unreadable } = await readPolicy(store);
  const demand = policyDemand(resources, node);
  const [first] = unreadable;
  const { workloads, closedByProfiles, hostEndpoints } = demand;
  if (first === undefined || workloads.length + closedByProfiles.length + hostEndpoints.length > 0) return demand;
  return { unknown: describeFailure(first.failure), remedy: remedyFor(first.key) };
}

export function findingsOf(facts: HostFacts & SwitchFacts): readonly Finding[] {
  const { droppingChains, partlyDroppingChains, hasLegacyFilter } = facts;
  return [
    forwardingFinding(4, facts, "net.ipv4.ip_forward"),
    forwardingFinding(6, facts, "net.ipv6.conf.all.forwarding"),
    ...facts.advertisedUplinks.map(advertisedFinding),
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

/** ADD of the first pod with an IPv6 address lets the host forward. */
function advertisedFinding(link: string): Finding {
  const name = link.replaceAll(".", "/");
  return {
    check: "IPv6 route",
    state: "warning",
    message: `the default route by ${link} is from router advertisements, and is lost when the first container gets an IPv6 address`,
    remedy: `sysctl -w net.ipv6.conf.${name}.accept_ra=2  # and in a file of /etc/sysctl.d`,
  };
}

function print(findings: readonly Finding[], context: Call & Terminal): void {
  const { paint, width } = stdoutPage(context);
  const color = { ok: paint.green, warning: paint.yellow, failed: paint.red };
  const indent = " ".repeat(width < MESSAGE_COLUMN + LEAST_MESSAGE ? 2 : MESSAGE_COLUMN);
  for (const { check, state, message, remedy } of findings) {
    const head = `${color[state](state.padEnd(7))} ${check.padEnd(16)}`;
    const lines = wrapped(message, width - indent.length);
    // A narrow terminal has no room for it beside the name of the check.
    const isBeside = indent.length === MESSAGE_COLUMN;
    context.stdout(isBeside ? `${head} ` : `${head.trimEnd()}\n${indent}`);
    context.stdout(`${lines.join(`\n${indent}`)}\n`);
    // A command stays in one line, to be copied.
    if (remedy !== undefined) context.stdout(`${indent}run: ${remedy}\n`);
  }
}

/** Where messages begin, and the least room for one. */
const MESSAGE_COLUMN = 25;
const LEAST_MESSAGE = 30;
