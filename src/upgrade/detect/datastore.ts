/** Which datastore the node agents use, and how the product's resources are stored in it. Pure. */
import { identity } from "../../identity.ts";
import type { Facts, Storage } from "../engine/facts.ts";
import { fieldsIn } from "../object-fields.ts";
import { agentsOf, pluginBeside } from "./agents.ts";
import { type DetectionRequest, type Found, found, unclear } from "./detection.ts";
import type { ClusterSnapshot } from "./snapshot.ts";
import { describeWorkload, variableOf } from "./workload.ts";

type Kind = Facts["datastore"];

interface Sign {
  readonly kind: Kind;
  readonly shownBy: string;
}

export function datastoreKind(snapshot: ClusterSnapshot, { datastore }: DetectionRequest): Found<Kind> {
  if (datastore !== undefined) return found(datastore);
  const signs = [...installationSigns(snapshot), ...agentSigns(snapshot)];
  const kinds = new Set(signs.map(({ kind }) => kind));
  const [only] = kinds;
  if (only !== undefined && kinds.size === 1) return found(only);
  const shown = signs.map(({ kind, shownBy }) => `${kind} (${shownBy})`).join("; ");
  const hint = snapshot.hasEtcdSecret ? "; there is a Secret with credentials of etcd" : "";
  return unclear(
    signs.length === 0 ? `nothing shows which datastore is used${hint}` : `the datastore is not certain: ${shown}`,
    "add --datastore kubernetes or --datastore etcd",
  );
}

/** The operator of earlier releases knew no other datastore than the orchestrator's API. */
function installationSigns({ installation }: ClusterSnapshot): readonly Sign[] {
  if (installation === undefined) return [];
  const type = fieldsIn(fieldsIn(installation, "spec"), "datastore")["type"];
  return [{ kind: type === "Etcd" ? "etcd" : "kubernetes", shownBy: "Installation default" }];
}

function agentSigns(snapshot: ClusterSnapshot): readonly Sign[] {
  return agentsOf(snapshot).flatMap((agent): readonly Sign[] => {
    const place = describeWorkload(agent);
    const type = variableOf(agent, "DATASTORE_TYPE");
    const plugin = pluginBeside(snapshot, agent.namespace);
    return [
      ...signOfType(type, `${place}: DATASTORE_TYPE=${type}`),
      ...signOfType(plugin?.["datastore_type"], `network config of ${agent.namespace}`),
      ...(variableOf(agent, "ETCD_ENDPOINTS") === undefined
        ? []
        : [{ kind: "etcd", shownBy: `${place}: ETCD_ENDPOINTS` } as const]),
      ...(plugin?.["etcd_endpoints"] === undefined
        ? []
        : [{ kind: "etcd", shownBy: `etcd_endpoints in the network config of ${agent.namespace}` } as const]),
    ];
  });
}

function signOfType(type: unknown, shownBy: string): readonly Sign[] {
  if (type === "kubernetes" || type === "orchestrator") return [{ kind: "kubernetes", shownBy }];
  return type === "etcdv3" ? [{ kind: "etcd", shownBy }] : [];
}

/**
 * An aggregated API serves what an earlier release has stored. Without one, the storage that is not locked is in use; while
 * both are locked, the move has not ended.
 */
export function storageOf(snapshot: ClusterSnapshot, kind: Kind): Found<Storage> {
  if (kind === "etcd") return found("etcd");
  const { formerInformation, currentInformation, hasFormerDefinitions, hasCurrentDefinitions } = snapshot;
  if (snapshot.hasAggregatedApi) return found("former");
  if (currentInformation !== undefined && !isLocked(currentInformation)) return found("current");
  if (formerInformation !== undefined || (hasFormerDefinitions && currentInformation === undefined)) {
    return found("former");
  }
  if (currentInformation !== undefined || hasCurrentDefinitions) return found("current");
  return unclear(
    `the API has none of the product's resources: neither clusterinformations.${identity.apiGroup} nor those of an earlier release are defined`,
    "wait until the node agents have started, or select another cluster with --kubeconfig and --context",
  );
}

export function isLocked(information: ClusterSnapshot["currentInformation"]): boolean {
  return fieldsIn(information, "spec")["datastoreReady"] === false;
}
