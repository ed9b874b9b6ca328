/** What users do to an Installation and to what the operator made of it, decided before a run by its seed. */

import type { ApiObject } from "../../src/datastore/kube/api.ts";
import { identity } from "../../src/identity.ts";
import { crdObjects, operatorCrdObjects } from "../../src/release/crds/released-crds.ts";
import { MANAGED_BY_TEXT } from "../../src/release/managed-by-label.ts";
import type { SimulatedApi } from "../datastore/simulated-api.ts";
import type { Random } from "../schedule/random.ts";

const INSTALLATIONS = `/apis/${identity.operatorApiGroup}/v1/installations`;
const DEFAULT = `${INSTALLATIONS}/default`;
const PULL_SECRETS = ["pull-a", "pull-b"];
const RENDERED = [
  "/api/v1/serviceaccounts",
  "/api/v1/configmaps",
  "/apis/apps/v1/daemonsets",
  "/apis/apps/v1/deployments",
  "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  "/apis/rbac.authorization.k8s.io/v1/rolebindings",
];

export interface PlannedChange {
  readonly at: number;
  readonly what: string;
  /** `false` if it is not possible yet: it is tried again. */
  act(api: SimulatedApi): boolean;
}

/** What there is before: namespaces, nodes, Secrets of the operator. */
export function layOutCluster(api: SimulatedApi, nodes: readonly string[]): void {
  for (const definition of [...crdObjects(), ...operatorCrdObjects()]) {
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    api.create(path, definition);
    api.patch(`${path}/${definition.metadata.name}/status`, {
      status: { conditions: [{ type: "Established", status: "True" }] },
    });
  }
  for (const name of ["default", "kube-system", identity.operator]) {
    api.create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  for (const name of nodes) {
    api.create("/api/v1/nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels: { "kubernetes.io/os": "linux" } },
    });
    api.patch(`/api/v1/nodes/${name}/status`, { status: { conditions: [{ type: "Ready", status: "True" }] } });
  }
  for (const name of PULL_SECRETS) {
    const metadata = { name, namespace: identity.operator };
    const data = { ".dockerconfigjson": btoa("{}") };
    api.create(`/api/v1/namespaces/${identity.operator}/secrets`, {
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/dockerconfigjson",
      metadata,
      data,
    });
  }
}

export function planChanges(random: Random, within: number): readonly PlannedChange[] {
  const spec = { [`${identity.product}Network`]: { ipPools: [{ cidr: "10.10.0.0/16" }] }, ...someSettings(random) };
  const changes = Array.from({ length: 4 + random.below(8) }, (): PlannedChange => {
    const at = random.below(within);
    const draw = random.next();
    if (draw < 0.45) return changed(at, someSettings(random));
    if (draw < 0.6) return removed(at, spec);
    return edited(at, random.below(1_000), random.below(4));
  });
  return [created(0, spec), ...changes].toSorted((one, other) => one.at - other.at);
}

/** Of these, none decides about the default of another. */
function someSettings(random: Random): object {
  const all = {
    controlPlaneReplicas: 1 + random.below(3),
    nodeMetricsPort: 9_000 + random.below(5),
    registry: random.pick(["registry.example.org/", "mirror.example.org/"]),
    imagePullSecrets: PULL_SECRETS.slice(0, random.below(3)).map((name) => ({ name })),
    componentResources: random.chance(0.5)
      ? []
      : [{ componentName: "Node", resourceRequirements: { requests: { cpu: `${1 + random.below(9)}00m` } } }],
    nodeUpdateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 + random.below(3) } },
  };
  return Object.fromEntries(Object.entries(all).filter(() => random.chance(0.4)));
}

function isPresent(object: ApiObject | undefined): object is ApiObject {
  return object !== undefined && object.metadata["deletionTimestamp"] === undefined;
}

function created(at: number, spec: object): PlannedChange {
  const object = {
    apiVersion: `${identity.operatorApiGroup}/v1`,
    kind: "Installation",
    metadata: { name: "default" },
    spec,
  };
  return {
    at,
    what: "create the Installation",
    act: (api) => {
      if (api.object(DEFAULT) !== undefined) return false;
      api.create(INSTALLATIONS, object);
      return true;
    },
  };
}

function changed(at: number, spec: object): PlannedChange {
  return {
    at,
    what: `change ${JSON.stringify(spec)}`,
    act: (api) => {
      if (!isPresent(api.object(DEFAULT))) return false;
      api.patch(DEFAULT, { spec });
      return true;
    },
  };
}

/** It is created again with the same spec as soon as it is gone. */
function removed(at: number, spec: object): PlannedChange {
  let isBegun = false;
  return {
    at,
    what: "delete the Installation and create it again",
    act: (api) => {
      if (!isBegun && !isPresent(api.object(DEFAULT))) return false;
      if (!isBegun) api.remove(DEFAULT);
      isBegun = true;
      return created(at, spec).act(api);
    },
  };
}

/** Somebody spoils an object that the operator keeps, or deletes it. */
function edited(at: number, which: number, how: number): PlannedChange {
  return {
    at,
    what: `spoil object ${which} by way ${how}`,
    act: (api) => {
      const [name = "", value] = MANAGED_BY_TEXT.split("=");
      const isOwn = ({ metadata }: ApiObject) =>
        (metadata["labels"] as Record<string, string> | undefined)?.[name] === value;
      const objects = RENDERED.flatMap((collection) =>
        api
          .list(collection)
          .filter(isOwn)
          .map((object) => pathOf(collection, object)),
      );
      const path = objects[which % Math.max(1, objects.length)];
      if (path === undefined) return true;
      if (how === 0) api.remove(path);
      else if (how === 1) api.patch(path, { metadata: { labels: { [name]: null } } });
      else api.patch(path, spoiled(path, api.object(path)));
      return true;
    },
  };
}

/** Only fields that the operator applies: what others add is theirs to keep. */
function spoiled(path: string, object: ApiObject | undefined): object {
  if (path.includes("/configmaps/"))
    return { data: Object.fromEntries(Object.keys(Object(object?.["data"])).map((key) => [key, "{}"])) };
  if (path.includes("/clusterroles/")) return { rules: [] };
  if (path.includes("/rolebindings/")) return { subjects: [] };
  if (path.includes("/deployments/")) return { spec: { replicas: 7 } };
  if (path.includes("/daemonsets/")) return { spec: { template: { spec: { hostNetwork: false } } } };
  return {};
}

function pathOf(collection: string, { metadata: { name, namespace } }: ApiObject): string {
  const at = collection.lastIndexOf("/");
  const scope = namespace === undefined ? "" : `/namespaces/${namespace}`;
  return `${collection.slice(0, at)}${scope}${collection.slice(at)}/${name}`;
}
