/** Rendered objects as a person reads them: the network config is shown decoded. */
import { checkNetworkFile, type FileReport } from "../../src/admin/config/check-network-file.ts";
import type { KubeObject } from "../../src/release/kube-object.ts";
import { NETWORK_CONFIG_KEY, NETWORK_CONFIG_MAP } from "../../src/release/workloads/names.ts";
import type { Rendered } from "../../src/release/workloads/render-installation.ts";
import { formatYaml } from "../../src/yaml.ts";

/** Everything, as YAML. */
export function renderedText(rendered: Rendered): string {
  return [...readable(rendered).values()].map(formatYaml).join("---\n");
}

export function objectText(object: KubeObject): string {
  return formatYaml(object);
}

/** Which fields differ from the other, one line for each, with the values before and after. */
export function differenceText(before: Rendered, after: Rendered): string {
  const [old, now] = [readable(before), readable(after)];
  const titles = new Set([...old.keys(), ...now.keys()]);
  const parts = [...titles].map((title) => [title, differences(old.get(title), now.get(title))] as const);
  return parts
    .filter(([, lines]) => lines.length > 0)
    .map(([title, lines]) => `${title}\n${lines.map((line) => `  ${line}\n`).join("")}`)
    .join("");
}

/** What `config check` finds in a network configuration list. */
export function findingsIn(text: string): Promise<FileReport> {
  return checkNetworkFile(text, {});
}

/** The network configuration list in the ConfigMap, as text. */
export function networkListText({ objects }: Pick<Rendered, "objects">): string {
  const map = objects.find(isNetworkConfig);
  return map === undefined ? "" : dataOf(map);
}

function readable({ objects, resources }: Rendered): ReadonlyMap<string, object> {
  const settings = { kind: "NodeAgentConfiguration", spec: resources.nodeAgentConfiguration };
  return new Map<string, object>([
    ...objects.map((object) => [`${object.kind} ${object.metadata.name}`, withDecodedConfig(object)] as const),
    [settings.kind, settings],
  ]);
}

function withDecodedConfig(object: KubeObject): object {
  return isNetworkConfig(object) ? { ...object, data: { [NETWORK_CONFIG_KEY]: JSON.parse(dataOf(object)) } } : object;
}

function isNetworkConfig({ kind, metadata }: KubeObject): boolean {
  return kind === "ConfigMap" && metadata.name === NETWORK_CONFIG_MAP;
}

function dataOf(map: KubeObject): string {
  return (map["data"] as Readonly<Record<string, string>>)[NETWORK_CONFIG_KEY] ?? "";
}

function differences(before: unknown, after: unknown, path = ""): readonly string[] {
  if (Bun.deepEquals(before, after)) return [];
  if (isRecord(before) && isRecord(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => differences(before[name], after[name], path === "" ? name : `${path}.${name}`));
  }
  if (Array.isArray(before) && Array.isArray(after)) return memberDifferences(before, after, path);
  return [`${path}: ${textOf(before)} -> ${textOf(after)}`];
}

/** Members with a name are compared with those of the same name; others are the same only if they are equal. */
function memberDifferences(before: readonly unknown[], after: readonly unknown[], path: string): readonly string[] {
  const names = [...before, ...after].map(nameOf);
  if (names.every((name) => name !== undefined)) {
    const [old, now] = [before, after].map((members) => new Map(members.map((member) => [nameOf(member), member])));
    return [...new Set(names)].flatMap((name) => differences(old?.get(name), now?.get(name), `${path}[${name}]`));
  }
  const missing = (from: readonly unknown[], other: readonly unknown[]) =>
    from.filter((member) => !other.some((each) => Bun.deepEquals(each, member))).map(textOf);
  return [
    ...missing(before, after).map((text) => `${path}: without ${text}`),
    ...missing(after, before).map((text) => `${path}: with ${text}`),
  ];
}

function nameOf(member: unknown): unknown {
  return isRecord(member) ? (member["name"] ?? member["type"]) : undefined;
}

function textOf(value: unknown): string {
  return value === undefined ? "absent" : JSON.stringify(value).replace(HASH, (hash) => hash.slice(0, 8));
}

const HASH = /[0-9a-f]{64}/g;

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
