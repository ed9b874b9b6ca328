/** Which of the manifests was applied. Every sign counts; signs that contradict each other are for the user to decide. Pure. */
import { identity } from "../../identity.ts";
import { type ManifestNetwork, NETWORK_TITLES } from "../engine/facts.ts";
import { FORMER_CONFIG_MAP, FORMER_TYPHA } from "../former-names.ts";
import { agentsOf, hasPresentLayout, isCanal, pluginBeside, productVariable } from "./agents.ts";
import { type DetectionRequest, type Found, found, unclear } from "./detection.ts";
import type { ClusterSnapshot } from "./snapshot.ts";
import { describeWorkload, variableOf, type Workload } from "./workload.ts";

interface Sign {
  readonly network: ManifestNetwork;
  readonly shownBy: string;
}

export function manifestNetwork(
  snapshot: ClusterSnapshot,
  { network: given }: DetectionRequest,
): Found<ManifestNetwork> {
  if (given !== undefined) return found(given);
  const signs = agentsOf(snapshot).flatMap((agent) => signsOf(snapshot, agent));
  const networks = new Set(signs.map(({ network }) => network));
  const [only] = networks;
  if (only !== undefined && networks.size === 1) return found(only);
  const shown = signs.map(({ network, shownBy }) => `${NETWORK_TITLES[network]} (${shownBy})`).join("; ");
  return unclear(
    signs.length === 0
      ? "nothing shows which manifest was applied"
      : `the manifest that was applied is not certain: ${shown}`,
    "add --variant own (networking and policy), other (policy with another networking plugin) or fabric (policy only, advanced)",
  );
}

function signsOf(snapshot: ClusterSnapshot, agent: Workload): readonly Sign[] {
  const place = describeWorkload(agent);
  if (isCanal(agent)) return [{ network: "other", shownBy: place }];
  return hasPresentLayout(agent) ? presentSigns(snapshot, agent, place) : formerSigns(snapshot, agent, place);
}

function presentSigns(snapshot: ClusterSnapshot, agent: Workload, place: string): readonly Sign[] {
  const switchName = productVariable("MANAGE_CNI");
  if (variableOf(agent, switchName) === "false")
    return [{ network: "other", shownBy: `${place}: ${switchName}=false` }];
  return addressSigns(snapshot, agent);
}

/** The network config alone is not enough: host-local is also used with networking of the product's own. */
function formerSigns(snapshot: ClusterSnapshot, agent: Workload, place: string): readonly Sign[] {
  const variable = productVariable("NETWORKING_BACKEND");
  const settings = snapshot.configMaps.get(`${agent.namespace}/${FORMER_CONFIG_MAP}`);
  const backend = variableOf(agent, variable) || settings?.[`${identity.product}_backend`];
  if (backend === undefined) return addressSigns(snapshot, agent);
  const shownBy = `${place}: ${variable}=${String(backend)}`;
  if (backend !== "none") return [{ network: "own", shownBy }];
  const usesPodRanges = variableOf(agent, "USE_POD_CIDR") === "true";
  const hasTypha = snapshot.workloads.some(({ name }) => name === FORMER_TYPHA);
  const signs = addressSigns(snapshot, agent).filter(({ network }) => network !== "fabric");
  // Without routes of its own and with other addresses than those of the Nodes, the variant is not one of the manifests.
  return usesPodRanges || hasTypha ? [{ network: "fabric", shownBy }, ...signs] : signs;
}

function addressSigns(snapshot: ClusterSnapshot, { namespace }: Workload): readonly Sign[] {
  const ipam = pluginBeside(snapshot, namespace)?.["ipam"];
  const type = typeof ipam === "object" && ipam !== null && "type" in ipam ? ipam.type : undefined;
  if (type === undefined) return [];
  const shownBy = `ipam type ${JSON.stringify(type)} in the network config of ${namespace}`;
  return [{ network: type === "host-local" ? "fabric" : "own", shownBy }];
}
