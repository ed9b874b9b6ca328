/**
 * Which datastore a command works on: options take precedence over the
 * environment, the environment over the file. If none of them selects one, it is
 * the datastore of the network that is installed on this host; a kubeconfig of
 * these sources then replaces that of the plugin. Pure: files are read by `open.ts`.
 *
 * Precedence applies to each setting separately, with one exception: a source
 * that sets endpoints or a discovery domain overrides both settings of the
 * sources after it.
 */

import { type DatastoreSettings, datastoreSettings } from "../../config/datastore-settings.ts";
import { type DecodedConfig, decodeNetworkConfig } from "../../config/decode.ts";
import type { KubeAccess } from "../../config/kube-access.ts";
import type { NamedFile } from "../../config/named-files.ts";
import { PluginError } from "../../errors.ts";
import { identity, ORCHESTRATOR_NAMES } from "../../identity.ts";
import { quoted } from "../../quote.ts";
import { UsageError } from "../main/command.ts";
import type { Call } from "../main/context.ts";
import { withEtcdCredentials } from "./etcd-credentials.ts";
import { type Chosen, type Layer, mergeLayers } from "./layers.ts";
import { DATASTORE_SETTINGS, type DatastoreSetting } from "./options.ts";

export { environmentLayer, fileLayer, type Layer, optionLayer } from "./layers.ts";

export interface DatastoreChoice {
  readonly settings: DatastoreSettings;
  /** Key and certificate files that must be readable. */
  readonly files: readonly NamedFile[];
  /** Whether no source selects a datastore. */
  readonly isDefault: boolean;
  /** The orchestrator's API, by options, the environment or the file, whatever the datastore is. */
  readonly givenAccess?: KubeAccess;
  /** Settings that have no meaning here, for a note on stderr. */
  readonly notes?: readonly string[];
}

/** What a command uses besides the datastore. */
export interface OtherNeeds {
  /** The orchestrator's API: a kubeconfig is then an option of every datastore. */
  readonly api?: true;
}

const KINDS: ReadonlyMap<string, DatastoreSettings["kind"]> = new Map([
  ["etcdv3", "etcd"],
  ["embedded", "embedded"],
  ...ORCHESTRATOR_NAMES.map((name) => [name, "orchestrator"] as const),
]);

export function chooseDatastore(layers: readonly Layer[], needs: OtherNeeds = {}): DatastoreChoice {
  const merged = mergeLayers(layers);
  const kind = KINDS.get(merged.get("datastore_type")?.value ?? "") ?? "etcd";
  // The environment may also serve other tools: settings of other datastore types are ignored.
  const chosen = new Map([...merged].filter(([, { setting }]) => setting.of === undefined || setting.of === kind));
  refuseUnusedOptions(merged, kind, needs);
  const values = Object.fromEntries(
    [...chosen].flatMap(([wire, { value, setting }]) => (isOwn(setting) ? [] : [[wire, value]])),
  );
  const decoded = decodeNetworkConfig({
    ...values,
    name: identity.adminTool,
    cniVersion: "1.0.0",
    type: identity.product,
    ipam: { type: identity.ipamType },
  });
  if (!decoded.ok) {
    const messages = decoded.problems.map(({ message }) => message);
    throw new PluginError("config-invalid", `Cannot use the datastore settings: ${messages.join("; ")}`, {
      details: [...chosen].map(([wire, { name }]) => `${wire} comes from ${name}`).join(", "),
    });
  }
  const settings = withOwnSettings(datastoreSettings(decoded.config), merged);
  const notes = layers.flatMap((layer) => layer.notes ?? []);
  return {
    settings,
    files: decoded.files,
    isDefault: !isDatastoreSelected(layers),
    ...givenAccess(merged),
    ...(notes.length === 0 ? {} : { notes }),
  };
}

/** Settings that a network config does not have: they are not decoded with it. */
function isOwn({ access, isFileOnly }: DatastoreSetting): boolean {
  return access !== undefined || isFileOnly === true;
}

function givenAccess(merged: ReadonlyMap<string, Chosen>): Pick<DatastoreChoice, "givenAccess"> {
  const access = accessIn(merged);
  return Object.keys(access).length === 0 ? {} : { givenAccess: access };
}

function withOwnSettings(settings: DatastoreSettings, merged: ReadonlyMap<string, Chosen>): DatastoreSettings {
  if (settings.kind === "orchestrator") return { ...settings, access: { ...settings.access, ...accessIn(merged) } };
  return settings.kind === "etcd" ? withEtcdCredentials(settings, textsIn(merged)) : settings;
}

function textsIn(merged: ReadonlyMap<string, Chosen>): ReadonlyMap<string, string> {
  return new Map([...merged].map(([wire, { value }]) => [wire, value]));
}

function accessIn(merged: ReadonlyMap<string, Chosen>): KubeAccess {
  return Object.fromEntries(
    [...merged.values()].flatMap((chosen) => {
      const { access } = chosen.setting;
      if (access === undefined) return [];
      return [[access, access === "kubeconfigs" ? kubeconfigsIn(chosen) : chosen.value]];
    }),
  );
}

/** The variable may name several files, as for kubectl; an option names one. */
function kubeconfigsIn({ name, setting, value }: Chosen): readonly string[] {
  return name.endsWith(setting.variable) ? value.split(":").filter((file) => file !== "") : [value];
}

/** Outside a pod and without any setting, the kubeconfig is the one that kubectl uses. */
export function withKubectlDefault(choice: DatastoreChoice, env: Call["env"]): DatastoreChoice {
  const { settings } = choice;
  if (settings.kind !== "orchestrator" || !env["HOME"] || env["KUBERNETES_SERVICE_HOST"]) return choice;
  if (settings.access.kubeconfigs !== undefined || settings.access.apiRoot !== undefined) return choice;
  const kubeconfigs = [`${env["HOME"]}/.kube/config`];
  return { ...choice, settings: { ...settings, access: { ...settings.access, kubeconfigs } } };
}

/** Whether any source selects a datastore. A kubeconfig in the environment may serve other tools. */
export function isDatastoreSelected(layers: readonly Layer[]): boolean {
  return layers.some(({ values }) => [...values.keys()].some((wire) => !ACCESS_WIRES.has(wire)));
}

const ACCESS_WIRES: ReadonlySet<string> = new Set(
  DATASTORE_SETTINGS.filter(({ access }) => access !== undefined).map(({ wire }) => wire),
);

/** The datastore of a network config, with the files that it needs. */
export function datastoreOf({ config, files }: Extract<DecodedConfig, { ok: true }>): DatastoreChoice {
  const settings = datastoreSettings(config);
  const isNeeded = ({ path }: NamedFile) => settings.kind === "orchestrator" || path[0] !== "kubernetes";
  return { settings, files: files.filter(isNeeded), isDefault: false };
}

/** As another user than the plugin: with the kubeconfig of an option, of the environment or of the file. */
export function withGivenKubeconfig(
  choice: DatastoreChoice,
  layers: readonly Layer[],
  needs: OtherNeeds = {},
): GivenKubeconfig {
  const { settings } = choice;
  const merged = mergeLayers(layers);
  refuseUnusedOptions(merged, settings.kind, needs);
  const given = merged.get("kubeconfig") ?? [...merged.values()].find(({ setting }) => setting.access !== undefined);
  if (settings.kind !== "orchestrator" || given === undefined) {
    return { choice: { ...choice, ...givenAccess(merged) } };
  }
  const own = accessIn(merged);
  // What the network config says about credentials is the plugin's; a context alone is one of its kubeconfig.
  const isOther = own.kubeconfigs !== undefined || own.apiRoot !== undefined;
  const access = isOther ? own : { ...settings.access, ...own };
  const files = isOther ? [] : choice.files;
  return { choice: { ...choice, settings: { ...settings, access }, files }, source: given.name };
}

export interface GivenKubeconfig {
  readonly choice: DatastoreChoice;
  /** The name of the option, variable or field; absent if there is none. */
  readonly source?: string;
}

/** An option that has no effect is a mistake of the caller. */
function refuseUnusedOptions(
  merged: ReadonlyMap<string, Chosen>,
  kind: DatastoreSettings["kind"],
  needs: OtherNeeds,
): void {
  for (const { setting, name } of merged.values()) {
    if (setting.of === undefined || setting.of === kind || !name.startsWith("--")) continue;
    if (setting.of === "orchestrator" && needs.api) continue;
    throw new UsageError(
      `${quoted(name)} applies only to the ${setting.of} datastore, but the datastore is ${kind}; see --datastore-type`,
    );
  }
}
