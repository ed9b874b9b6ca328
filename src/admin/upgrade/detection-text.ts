/** What is installed in a cluster, as text. Pure. */
import { counted } from "../../counted.ts";
import { apiVersionOf, PRODUCT_API } from "../../identity.ts";
import {
  type Facts,
  type InstallMethod,
  NETWORK_TITLES,
  type Obstacle,
  type Storage,
} from "../../upgrade/engine/facts.ts";
import { FORMER_API } from "../../upgrade/former-names.ts";
import type { Page } from "../terminal/page.ts";
import type { Paint } from "../terminal/paint.ts";
import { formatTable } from "../terminal/table.ts";

export function detectionText(facts: Partial<Facts>, obstacles: readonly Obstacle[], page: Page): string {
  const rows = [
    ["Installed by:", facts.method === undefined ? UNCLEAR : methodText(facts.method)],
    ["Datastore:", facts.datastore === undefined ? UNCLEAR : datastoreText(facts.datastore, facts.storage)],
    ["Release:", `${facts.version ?? UNCLEAR} (this tool: ${facts.target ?? "unknown"})`],
    ["Orchestrator:", `${facts.orchestratorVersion ?? "unknown"}, ${counted(facts.nodes?.length ?? 0, "node")}`],
    ...listRows("Not ended:", facts.unfinished ?? []),
    ...featureRows(facts),
  ];
  const parts = (facts.parts ?? []).map(({ part, version = "unknown" }) => [part, version]);
  return [
    ...rows.map(([title = "", value = ""]) => `${title.padEnd(WIDTH)}${value}\n`),
    parts.length === 0 ? "" : `\n${formatTable(["PART", "RELEASE"], parts, page)}`,
    ...obstacleLines(obstacles, page.paint),
  ].join("");
}

const WIDTH = 28;
const UNCLEAR = "unclear";

function methodText(method: InstallMethod): string {
  switch (method.kind) {
    case "operator":
      return "the operator's manifest";
    case "manifest":
      return `manifest, ${NETWORK_TITLES[method.network]}`;
    case "chart": {
      const { name, namespace, revision, chartVersion, status } = method.release;
      return `chart ${chartVersion}, release ${namespace}/${name}, revision ${revision} (${status})`;
    }
  }
}

function datastoreText(datastore: Facts["datastore"], storage: Storage | undefined): string {
  if (datastore === "etcd" || storage === undefined) return datastore;
  const api = apiVersionOf(storage === "former" ? FORMER_API : PRODUCT_API);
  return `${datastore}, stored as ${api}${storage === "former" ? ", which is to be moved" : ""}`;
}

/** Nothing is said of what could not be looked for. */
function featureRows(facts: Partial<Facts>): readonly (readonly string[])[] {
  const { hasApplicationLayerPolicy, hostEndpoints, otherHostEndpoints = [], hasUpgradePolicy, ownedObjects } = facts;
  if (hostEndpoints === undefined || ownedObjects === undefined) return [];
  const byHand = [
    ...hostEndpoints.map((name) => `${name} (all interfaces)`),
    ...otherHostEndpoints.map((name) => `${name} (not all interfaces)`),
  ];
  return [
    ["Application layer policy:", hasApplicationLayerPolicy ? "in use" : "not in use"],
    ...(byHand.length === 0 ? [["Host endpoints by hand:", "none"]] : listRows("Host endpoints by hand:", byHand)),
    ...(hasUpgradePolicy ? [["Policy of former upgrade:", "allow-all-upgrade is still there"]] : []),
    ...(ownedObjects.length === 0 ? [["Owner references:", "none"]] : listRows("Owner references:", ownedObjects)),
  ];
}

function listRows(title: string, values: readonly string[]): readonly (readonly string[])[] {
  return values.map((value, index) => [index === 0 ? title : "", value]);
}

function obstacleLines(obstacles: readonly Obstacle[], { red }: Paint): readonly string[] {
  if (obstacles.length === 0) return [];
  const lines = obstacles.map(({ message, remedy }) => `  ${red("✗")} ${message}\n    → ${remedy}\n`);
  return ["\nAn upgrade cannot be planned:\n", ...lines];
}
