/** The status of one host as text and as JSON. Pure. */
import { listed } from "../../counted.ts";
import { identity } from "../../identity.ts";
import type { Page } from "../terminal/page.ts";
import { findingLines, poolRows, poolsJson, section } from "./cluster-report.ts";
import { isFailure, type StatusFinding } from "./finding.ts";
import type { HostStatusFacts } from "./host-states.ts";

export function hostStatusText(facts: HostStatusFacts, findings: readonly StatusFinding[], page: Page): string {
  const { hostName, node, datastore, network, toolVersion } = facts;
  const place = datastore.place === "" ? "" : ` (${datastore.place})`;
  return [
    `Host:        ${hostName}${node === hostName ? "" : `, node ${node}`}\n`,
    `Network:     ${"file" in network ? `${network.config.name} (${network.file})` : "none"}\n`,
    `Node agent:  ${agentText(facts)}\n`,
    `Datastore:   ${datastore.kind}${place}\n`,
    `Versions:    ${identity.adminTool} ${toolVersion}\n`,
    section(["POOL", "CIDR", "SIZE", "USED", "FREE", "STATE"], poolRows(facts), page, ["SIZE", "CIDR"]),
    section(
      ["CONTAINER", "NETWORK", "ADDRESSES", "INTERFACE", "POLICIES"],
      facts.containers.map(({ name, network: own, addresses, interfaceName, policies, isGone }) => [
        ...[name, own, addresses.join(","), isGone ? "gone" : interfaceName, String(policies.length)],
      ]),
      page,
      ["INTERFACE", "NETWORK"],
    ),
    section(
      ["HOST ENDPOINT", "INTERFACE", "PROFILES", "POLICIES"],
      facts.hostEndpoints.map(({ name, interface: own, profiles, policies }) => [
        ...[name, own, profiles.join(",") || "none", String(policies.length)],
      ]),
      page,
    ),
    section(
      ["POLICY", "TIER", "SELECTS"],
      facts.policies.map(({ name, tier, containers, hostEndpoints }) => [
        name,
        tier,
        selectedText(containers, hostEndpoints),
      ]),
      page,
    ),
    ...findingLines(findings, page.paint),
  ].join("");
}

function agentText({ agent, datastore, node }: HostStatusFacts): string {
  if (agent === undefined) return "unknown";
  const version = datastore.agents.find((each) => each.node === node)?.version;
  const release = version === undefined ? "" : `, release ${version}`;
  return agent === "running" ? `running${release}` : agent === "stopped" ? "not running" : "not used";
}

function selectedText(containers: readonly string[], hostEndpoints: readonly string[]): string {
  const all = [...containers, ...hostEndpoints.map((name) => `host endpoint ${name}`)];
  if (all.length === 0) return "nothing on this host";
  return listed(all);
}

export function hostStatusJson(facts: HostStatusFacts, findings: readonly StatusFinding[]): object {
  const { toolVersion, hostName, node, agent, network, datastore, containers, hostEndpoints, policies } = facts;
  const version = datastore.agents.find((each) => each.node === node)?.version;
  return {
    ok: !findings.some(isFailure),
    scope: "host",
    ...{ hostName, node, toolVersion },
    network: "file" in network ? { name: network.config.name, file: network.file } : null,
    agent: { state: agent ?? "unknown", ...(version === undefined ? {} : { version }) },
    datastore: { kind: datastore.kind, place: datastore.place },
    pools: poolsJson(datastore.pools),
    ...{ containers, hostEndpoints, policies, findings },
  };
}
