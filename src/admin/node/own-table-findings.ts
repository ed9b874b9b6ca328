/** What the check of a node says about the product's own tables and the reverse path filter of its links. Pure. */

import { counted } from "../../counted.ts";
import { GUARD_TABLE } from "../../firewall/guard-table.ts";
import { NAT_TABLE } from "../../firewall/nat-table.ts";
import { identity } from "../../identity.ts";
import type { TableReference } from "../../linux/nftables/ruleset.ts";
import type { Finding } from "./finding.ts";
import type { HostFacts } from "./host-facts.ts";

type Facts = Pick<HostFacts, "tables" | "podLinks">;

const RESTORE = `${identity.adminTool} node restore`;
/** The ports of a container come back only with an ADD of its own. */
const RELOAD = "podman network reload --all   # or restart the containers with published ports";
const STRICT = 1;

export function ownTableFindings(facts: Facts): readonly Finding[] {
  return [natFinding(facts), guardFinding(facts), hostPortFinding(facts), reversePathFinding(facts)];
}

function natFinding({ tables, podLinks }: Facts): Finding {
  const check = "NAT";
  if (tables.nat === "intact") return { check, state: "ok", message: "pods of pools with natOutgoing are masqueraded" };
  if (tables.nat === "changed") return changed(check, NAT_TABLE);
  // Every ADD writes the guard table, so that only a flush removes it from a host with pods.
  if (podLinks.length === 0 || tables.guard !== "missing") {
    return { check, state: "ok", message: "no table: no pool had natOutgoing when a pod was added last" };
  }
  return { ...missing(check, NAT_TABLE, podLinks), state: "warning" };
}

function guardFinding({ tables, podLinks }: Facts): Finding {
  const check = "spoofing";
  if (tables.guard === "intact") {
    return { check, state: "ok", message: "packets of pods from addresses that are not their own are dropped" };
  }
  if (tables.guard === "changed") return changed(check, GUARD_TABLE);
  if (podLinks.length === 0) return { check, state: "ok", message: "no table: this host has no pods" };
  return missing(check, GUARD_TABLE, podLinks);
}

function hostPortFinding({ tables, podLinks }: Facts): Finding {
  const check = "host ports";
  const table: TableReference = { family: "ip", name: identity.hostPortTable };
  if (tables.hostPorts === "intact") return { check, state: "ok", message: "forwarded" };
  if (tables.hostPorts === "changed") return changed(check, table, RELOAD);
  const mapped = podLinks.filter(({ servesLoopback }) => servesLoopback);
  if (mapped.length === 0) return { check, state: "ok", message: "no table: no container has host ports" };
  return { ...missing(check, table, mapped), remedy: RELOAD };
}

function reversePathFinding({ tables, podLinks }: Facts): Finding {
  const check = "rp_filter";
  const lenient = podLinks.filter(({ reversePath }) => reversePath !== STRICT);
  if (lenient.length === 0) {
    return { check, state: "ok", message: `strict on ${counted(podLinks.length, "link")} of pods` };
  }
  const guarded = tables.guard === "intact" ? "; the guard table alone drops packets from foreign addresses" : "";
  return {
    check,
    state: tables.guard === "intact" ? "warning" : "failed",
    message: `not strict on ${counted(lenient.length, "link")} of pods, for example ${lenient[0]?.name}${guarded}`,
    remedy: `sysctl -w net.ipv4.conf.all.rp_filter=0; for each in /proc/sys/net/ipv4/conf/${identity.interfacePrefix}*/rp_filter; do echo 1 > $each; done`,
  };
}

function changed(check: string, table: TableReference, remedy = RESTORE): Finding {
  const message = `table ${nameOf(table)} was changed by another program`;
  return { check, state: "failed", message, remedy };
}

function missing(check: string, table: TableReference, links: Facts["podLinks"]): Finding {
  const reason = `another program flushed or deleted it ("nft flush ruleset", a firewall that restarts)`;
  const message = `table ${nameOf(table)} is missing although it is needed by ${counted(links.length, "pod")}: ${reason}`;
  return { check, state: "failed", message, remedy: RESTORE };
}

function nameOf({ family, name }: TableReference): string {
  return `${family} "${name}"`;
}
