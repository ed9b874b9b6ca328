/** The network config as it is installed on a node: the cluster's, with what differs from node to node. Pure. */
import { isJsonObject, type JsonObject } from "../../cni/json.ts";
import { decodeNetworkConfig } from "../../config/decode.ts";
import { mapOwnEntry, ownEntryOf } from "../../config/own-entry.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";

export interface NodeValues {
  readonly nodeName: string;
  /** On the host. */
  readonly kubeconfig: string;
  readonly etcdEndpoints?: string;
  /** On the host, by the fields that name them. */
  readonly etcdFiles: Readonly<Record<string, string>>;
}

export interface NodeNetworkList {
  /** The text of the file. */
  readonly text: string;
  /** The entry of our plugin, as a runtime passes it. */
  readonly own: JsonObject;
}

/** `file`: where the text comes from. Refuses what the plugin would refuse. */
export function nodeNetworkList(text: string, file: string, values: NodeValues): NodeNetworkList {
  const list = parse(text, file);
  const { plugins } = list;
  const entries: readonly unknown[] = Array.isArray(plugins) ? plugins : [];
  const completed = entries.map((entry) => mapOwnEntry(entry, (own) => withNodeValues(own, values)));
  const [first, ...others] = completed.map(ownEntryOf).filter((entry) => entry !== undefined);
  if (first === undefined || others.length > 0) {
    throw invalid(file, `its "plugins" do not have one entry of type "${identity.product}"`);
  }
  const own = { ...first, name: list["name"], cniVersion: list["cniVersion"] };
  const decoded = decodeNetworkConfig(own);
  if (!decoded.ok) throw invalid(file, decoded.problems.map(({ message }) => message).join("; "));
  return { text: `${JSON.stringify({ ...list, plugins: completed }, undefined, 2)}\n`, own };
}

function withNodeValues(entry: JsonObject, { nodeName, kubeconfig, etcdEndpoints, etcdFiles }: NodeValues): JsonObject {
  const kubernetes = isJsonObject(entry["kubernetes"]) ? entry["kubernetes"] : {};
  return {
    ...entry,
    nodename: nodeName,
    ...(etcdEndpoints === undefined ? {} : { etcd_endpoints: etcdEndpoints }),
    ...etcdFiles,
    kubernetes: { ...kubernetes, kubeconfig },
  };
}

function parse(text: string, file: string): JsonObject {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw invalid(file, "it is not valid JSON");
  }
  if (isJsonObject(value)) return value;
  throw invalid(file, "it is not a JSON object");
}

function invalid(file: string, reason: string): PluginError {
  return new PluginError("config-invalid", `Cannot install the network config ${quoted(file)}: ${reason}`, {
    details: "correct the ConfigMap that it is mounted from",
  });
}
