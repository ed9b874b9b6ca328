/** The network configs of a cluster, which node agents write to their nodes. Reads only. */
import type { ClusterObjects, Fields } from "../kube/objects.ts";
import { CHOSEN_ANNOTATIONS } from "../model/recorded-annotations.ts";
import { isObject } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";
import type { ListKey } from "../release/admission/annotation-users.ts";
import { NETWORK_CONFIG_KEY, NETWORK_CONFIG_MAP } from "../release/workloads/names.ts";
import type { Facts } from "./engine/facts.ts";
import { FORMER_CANAL, FORMER_CONFIG_MAP } from "./former-names.ts";
import { fieldsIn } from "./object-fields.ts";

const PLACES = [
  { name: FORMER_CONFIG_MAP, key: "cni_network_config" },
  { name: FORMER_CANAL.configMap, key: "cni_network_config" },
  { name: NETWORK_CONFIG_MAP, key: NETWORK_CONFIG_KEY },
] as const;

export interface LiveConfig {
  /** `ConfigMap kube-system/cni-config` */
  readonly what: string;
  readonly path: string;
  readonly key: string;
  readonly text: string;
}

export async function liveConfigs(objects: ClusterObjects, namespace: string): Promise<readonly LiveConfig[]> {
  const found = await Promise.all(
    PLACES.map(async ({ name, key }): Promise<readonly LiveConfig[]> => {
      const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
      const text = fieldsIn(await objects.read(path), "data")[key];
      const what = `ConfigMap ${namespace}/${name}`;
      return typeof text === "string" ? [{ what, path, key, text }] : [];
    }),
  );
  return found.flat();
}

const SWITCHES: Readonly<Record<ListKey, string>> = {
  ipAddrsNoIpam: "ip_addrs_no_ipam",
  floatingIPs: "floating_ips",
  allowedSourcePrefixes: "allowed_source_prefixes",
};

/** The annotations that pods can use today. All of them if there is no network config that tells. */
export async function usableAnnotations(
  objects: ClusterObjects,
  { namespace, allowsSourceSpoofing = false }: Pick<Facts, "namespace" | "allowsSourceSpoofing">,
): Promise<readonly ListKey[]> {
  const lists = (await liveConfigs(objects, namespace)).map(({ text }) => parseNetworkList(text));
  if (lists.length === 0 || lists.includes(undefined)) return CHOSEN_ANNOTATIONS;
  const plugins = lists.flatMap((list = {}) => [list, ...pluginsOf(list)]);
  const isOn = (key: ListKey) => plugins.some((each) => fieldsIn(each, "feature_control")[SWITCHES[key]] === true);
  return CHOSEN_ANNOTATIONS.filter((key) => isOn(key) || (key === "allowedSourcePrefixes" && allowsSourceSpoofing));
}

/** `undefined` if it is not a network config. Placeholders become strings. */
export function parseNetworkList(text: string): Fields | undefined {
  try {
    const value = parseJson(text.replace(/:\s*(__[A-Z0-9_]+__)/g, ': "$1"'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** None if it is the config of a single plugin. */
export function pluginsOf(list: Fields): readonly Fields[] {
  const plugins = list["plugins"];
  return Array.isArray(plugins) ? plugins.filter(isObject) : [];
}
