/** Objects as the orchestrator's API has them now, for decisions that cannot be undone. */

import type { ResourceName } from "../model/keys.ts";
import { type PodRecord, podRecordOf } from "../model/pod-record.ts";
import { isObject } from "../model/shape.ts";
import { type StatefulSetName, type StatefulSetSize, statefulSetKey, statefulSetOf } from "../model/stateful-set.ts";
import { parseJson } from "../parse-json.ts";
import type { KubeClient } from "./api.ts";
import { clusterObjects } from "./objects.ts";
import { requireOk } from "./require-ok.ts";

export interface LiveObjects {
  /** Whether there is no object at the path. */
  isAbsent(path: string): Promise<boolean>;
  /** UID of the namespace `kube-system`: it stays the same as long as the cluster exists; `undefined` if there is none. */
  readClusterUid(): Promise<string | undefined>;
  readPod(pod: { readonly namespace: string; readonly name: string }): Promise<PodRecord | undefined>;
  /** Those that run the virtual machine. */
  podsOfMachine(machine: ResourceName): Promise<readonly PodRecord[]>;
}

interface LiveKind<Owner> {
  /** `undefined` if it does not exist. */
  read(name: StatefulSetName): Promise<Owner | undefined>;
  /** Of all namespaces, by `statefulSetKey()`. */
  list(): Promise<ReadonlyMap<string, Owner>>;
}

export interface LiveOwners {
  readonly statefulSets: LiveKind<StatefulSetSize>;
  /** By the name of the machine or of its instance, which exists while it runs. */
  readonly machines: LiveKind<"exists">;
  readonly namespaces: LiveKind<"exists">;
}

export function liveOwners(client: Pick<KubeClient, "request">): LiveOwners {
  const objects = clusterObjects(client);
  return {
    statefulSets: {
      read: async ({ namespace, name }) => {
        const found = await objects.read(`${APPS}/namespaces/${namespace}/statefulsets/${name}`);
        return found && statefulSetOf(found);
      },
      list: async () => {
        const keep = (item: Readonly<Record<string, unknown>>) => [statefulSetOf(item)];
        const all = await objects.collect(`${APPS}/statefulsets`, { content: "whole", keep });
        return new Map(all.map((each) => [statefulSetKey(each), each]));
      },
    },
    machines: {
      read: async ({ namespace, name }) => {
        for (const kind of MACHINE_KINDS)
          if (await objects.read(`${KUBEVIRT}/namespaces/${namespace}/${kind}/${name}`)) return "exists";
        return undefined;
      },
      list: async () =>
        new Map((await Promise.all(MACHINE_KINDS.map((kind) => namesAt(`${KUBEVIRT}/${kind}`)))).flat()),
    },
    namespaces: {
      read: async ({ name }) => ((await objects.read(`${NAMESPACES}/${name}`)) === undefined ? undefined : "exists"),
      list: async () => new Map(await namesAt(NAMESPACES)),
    },
  };

  async function namesAt(path: string): Promise<readonly (readonly [string, "exists"])[]> {
    const keep = (item: Readonly<Record<string, unknown>>) => [statefulSetKey(statefulSetOf(item))];
    return (await objects.collect(path, { content: "metadata", keep })).map((key) => [key, "exists"]);
  }
}

const APPS = "/apis/apps/v1";
const KUBEVIRT = "/apis/kubevirt.io/v1";
const MACHINE_KINDS = ["virtualmachines", "virtualmachineinstances"] as const;
const NAMESPACES = "/api/v1/namespaces";

export function liveObjects(client: Pick<KubeClient, "request">): LiveObjects {
  const read = async (path: string): Promise<string | undefined> => {
    const request = { method: "GET", path } as const;
    const response = await client.request(request);
    return response.status === 404 ? undefined : requireOk(response, request);
  };
  return {
    isAbsent: async (path) => (await read(path)) === undefined,
    readClusterUid: async () => {
      const text = await read(CLUSTER_NAMESPACE_PATH);
      return clusterUidOf(text === undefined ? undefined : parseJson(text));
    },
    readPod: async ({ namespace, name }) => {
      const text = await read(`/api/v1/namespaces/${namespace}/pods/${name}`);
      return text === undefined ? undefined : podOf(parseJson(text));
    },
    podsOfMachine: async ({ namespace, name }) => {
      const pods = await clusterObjects(client).list(`/api/v1/namespaces/${namespace}/pods`, MACHINES);
      return pods.map(podOf).filter(({ machine }) => machine === name);
    },
  };
}

/** KubeVirt labels all of its pods so. */
const MACHINES = { labelSelector: "kubevirt.io=virt-launcher" };

function podOf(object: unknown): PodRecord {
  return podRecordOf(object as Parameters<typeof podRecordOf>[0]);
}

/** Its UID identifies the cluster. */
export const CLUSTER_NAMESPACE_PATH = "/api/v1/namespaces/kube-system";

export function clusterUidOf(namespace: unknown): string | undefined {
  const uid = fieldOf(fieldOf(namespace, "metadata"), "uid");
  return typeof uid === "string" ? uid : undefined;
}

function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}
