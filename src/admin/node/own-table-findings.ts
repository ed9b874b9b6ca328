/** What the check of a node says about the product's own tables and the reverse path filter of its links. Pure. */

import { counted } from "../../counted.ts";
import { FLOATING_TABLE } from "../../firewall/floating-table.ts";
import { GUARD_TABLE } from "../../firewall/guard-table.ts";
import { NAT_TABLE } from "../../firewall/nat-table.ts";
import { identity } from "../../identity.ts";
import type { TableReference } from "../../linux/nftables/ruleset.ts";
import type { HostFacts, PodLinkFacts } from "../host/facts.ts";
import type { Finding } from "./finding.ts";

type Facts = Pick<HostFacts, "tables" | "podLinks" | "knowsClusterSources"> & SwitchFacts;

/** What the installed network config says. */
export interface SwitchFacts {
  /** Whether pods may send from further sources; absent: it is not known. */
  readonly allowsFurtherSources?: boolean;
}

const RESTORE = `${identity.adminTool} node restore`;
/** Former releases left no record of a container's ports. */
const RESTORE_PORTS = `${RESTORE}   # containers that a former release connected: podman network reload --all`;
const STRICT = 1;
const OFF = 0;

export function ownTableFindings(facts: Facts): readonly Finding[] {
  return [
    natFinding(facts),
    floatingFinding(facts),
    guardFinding(facts),
    hostPortFinding(facts),
    reversePathFinding(facts),
  ];
}

function natFinding({ tables, podLinks }: Facts): Finding {
  const check = "NAT";
  if (tables.nat === "intact")
    return { check, state: "ok", message: "containers with addresses of pools with natOutgoing are masqueraded" };
  if (tables.nat === "changed") return changed(check, NAT_TABLE);
  // Every ADD writes the guard table, so that only a flush removes it from a host with pods.
  if (podLinks.length === 0 || tables.guard !== "missing") {
    return { check, state: "ok", message: "no table: no pool had natOutgoing when a container was added last" };
  }
  return { ...missing(check, NAT_TABLE, podLinks), state: "warning" };
}

/** Whether the table is needed only the endpoints tell: the agent and `node restore` compare it with them. */
function floatingFinding({ tables }: Facts): Finding {
  const check = "floating IPs";
  if (tables.floating === "changed") return changed(check, FLOATING_TABLE);
  const isPresent = tables.floating === "intact";
  return {
    check,
    state: "ok",
    message: isPresent ? "lead to containers of this host" : "none configured on this host",
  };
}

function guardFinding(facts: Facts): Finding {
  const { tables, podLinks } = facts;
  const check = "spoofing";
  if (tables.guard === "intact") return sourcesFinding(check, facts);
  if (tables.guard === "changed") return changed(check, GUARD_TABLE);
  if (podLinks.length === 0) return { check, state: "ok", message: "no table: this host has no containers" };
  return missing(check, GUARD_TABLE, podLinks);
}

/** Another program may have flushed the table, and an ADD has written only its rules since. */
function sourcesFinding(check: string, { podLinks, knowsClusterSources, allowsFurtherSources }: Facts): Finding {
  const lost = podLinks.filter(({ allowsSources, allowedFamilies }) => allowsSources && allowedFamilies.length === 0);
  if (lost.length > 0 && allowsFurtherSources === false) {
    const reason = '"feature_control.allowed_source_prefixes" of the network config is not true';
    const message = `packets from the further prefixes of ${counted(lost.length, "container")}, for example by ${lost[0]?.name}, are dropped: ${reason}`;
    return { check, state: "ok", message };
  }
  if (lost.length > 0) {
    const state = "are no longer in the table: packets from these sources are dropped";
    const message = `the prefixes that ${counted(lost.length, "container")} may send from, for example by ${lost[0]?.name}, ${state}`;
    return { check, state: "failed", message, remedy: RESTORE };
  }
  const allowed = podLinks.filter(({ allowedFamilies }) => allowedFamilies.length > 0).length;
  if (allowed > 0 && !knowsClusterSources) {
    const reason = "the table does not have the addresses of pools and nodes yet, which are excluded";
    const message = `packets from the further prefixes of ${counted(allowed, "container")} are dropped: ${reason}`;
    return { check, state: "failed", message, remedy: RESTORE };
  }
  const exception = allowed === 0 ? "" : `; ${counted(allowed, "container")} may also send from other prefixes`;
  const message = `packets of containers from addresses that are not their own are dropped${exception}`;
  return { check, state: "ok", message };
}

function hostPortFinding({ tables, podLinks }: Facts): Finding {
  const check = "host ports";
  const table: TableReference = { family: "ip", name: identity.hostPortTable };
  if (tables.hostPorts === "intact") return { check, state: "ok", message: "forwarded" };
  if (tables.hostPorts === "changed") return changed(check, table, RESTORE_PORTS);
  const mapped = podLinks.filter(({ servesLoopback }) => servesLoopback);
  if (mapped.length === 0) return { check, state: "ok", message: "no table: no container has host ports" };
  return { ...missing(check, table, mapped), remedy: RESTORE_PORTS };
}

function reversePathFinding({ tables, podLinks }: Facts): Finding {
  const check = "rp_filter";
  const [blocked] = podLinks.filter(
    ({ reversePath, allowedFamilies }) => reversePath === STRICT && allowedFamilies.includes(4),
  );
  if (blocked !== undefined) return blockedFinding(check, blocked.name);
  // Off where the pod may send from other prefixes: there the guard table decides.
  const isExempt = ({ reversePath, allowsSources }: PodLinkFacts) => allowsSources && reversePath === OFF;
  const exempt = podLinks.filter(isExempt).length;
  const lenient = podLinks.filter((link) => link.reversePath !== STRICT && !isExempt(link));
  if (lenient.length === 0) {
    const off =
      exempt === 0 ? "" : `, off on ${counted(exempt, "link")} of containers that may send from other prefixes`;
    return {
      check,
      state: "ok",
      message: `strict on ${counted(podLinks.length - exempt, "link")} of containers${off}`,
    };
  }
  const guarded = tables.guard === "intact" ? "; the guard table alone drops packets from foreign addresses" : "";
  return {
    check,
    state: tables.guard === "intact" ? "warning" : "failed",
    message: `not strict on ${counted(lenient.length, "link")} of containers, for example ${lenient[0]?.name}${guarded}`,
    remedy: `sysctl -w net.ipv4.conf.all.rp_filter=0; for each in ${filesOf(lenient, exempt)}; do echo 1 > $each; done`,
  };
}

/** All links, unless some must stay as they are. */
function filesOf(lenient: Facts["podLinks"], exempt: number): string {
  const names = exempt === 0 ? [`${identity.interfacePrefix}*`] : lenient.map(({ name }) => name);
  return names.map((name) => `/proc/sys/net/ipv4/conf/${name}/rp_filter`).join(" ");
}

/** The larger value of the link and of all links takes effect. */
function blockedFinding(check: string, name: string): Finding {
  const message = `strict on ${name}, whose container may send from other prefixes: the kernel drops its packets`;
  const remedy = `sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.${name}.rp_filter=0`;
  return { check, state: "warning", message, remedy };
}

function changed(check: string, table: TableReference, remedy = RESTORE): Finding {
  const message = `table ${nameOf(table)} was changed by another program`;
  return { check, state: "failed", message, remedy };
}

function missing(check: string, table: TableReference, links: Facts["podLinks"]): Finding {
  const reason = `another program flushed or deleted it ("nft flush ruleset", a firewall that restarts)`;
  const message = `table ${nameOf(table)} is missing although it is needed by ${counted(links.length, "container")}: ${reason}`;
  return { check, state: "failed", message, remedy: RESTORE };
}

function nameOf({ family, name }: TableReference): string {
  return `${family} "${name}"`;
}
