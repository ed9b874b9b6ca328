/** The sources of datastore settings (options, environment, file) and their merge, setting by setting. Pure. */

import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import type { Given } from "../main/command.ts";
import type { Call } from "../main/context.ts";
import { DATASTORE_SETTINGS, type DatastoreSetting, FIELDS_WITHOUT_EFFECT, INSECURE_FIELD } from "./options.ts";

/** The settings of one source, by their names in a network config. */
export interface Layer {
  readonly values: ReadonlyMap<string, string>;
  /** The source's name of a setting, for messages: `--etcd-endpoints`, `ETCD_ENDPOINTS` … */
  readonly nameOf: (setting: DatastoreSetting) => string;
  /** What the source sets and nothing uses. */
  readonly notes?: readonly string[];
}

const SOURCES_OF_ENDPOINTS: ReadonlySet<string> = new Set(["etcd_endpoints", "etcd_discovery_srv"]);

export function optionLayer(given: Given): Layer {
  return layerOf(
    ({ option }) => given.values.get(option.name),
    ({ option }) => `--${option.name}`,
  );
}

export function environmentLayer(env: Call["env"]): Layer {
  return layerOf(
    ({ variable }) => env[prefixed(variable)] || env[variable] || undefined,
    ({ variable }) => (env[prefixed(variable)] ? prefixed(variable) : variable),
  );
}

/** The variable with the name of the product, which takes precedence: other tools may use the one without. */
function prefixed(variable: string): string {
  return `${identity.environmentPrefix}${variable}`;
}

/** `content`: the parsed file; its fields are at the top level or under `spec`. */
export function fileLayer(content: unknown, file: string): Layer {
  if (content === null)
    return layerOf(
      () => undefined,
      () => file,
    );
  const fields = isObject(content) && isObject(content["spec"]) ? content["spec"] : content;
  if (!isObject(fields)) throw fileInvalid(file, "it does not contain an object with settings");
  const known = DATASTORE_SETTINGS.map(({ field }) => field);
  if (isObject(content) && fields !== content) refuseUnknown(Object.keys(content), [...ENVELOPE, "spec"], file);
  const notes: string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    if (ENVELOPE.has(name)) continue;
    if (name === INSECURE_FIELD) {
      if (value === false || value === null) continue;
      const remedy = 'set "insecure-skip-tls-verify" in the kubeconfig, or better "certificate-authority"';
      throw fileInvalid(file, `${quoted(name)} is ${quoted(value)}, which is not supported; ${remedy}`);
    }
    const effect = FIELDS_WITHOUT_EFFECT.get(name);
    if (effect !== undefined) {
      notes.push(`${name} in ${file} has no effect: ${effect}`);
      continue;
    }
    if (!known.includes(name)) {
      const nearest = nearestName(name, known);
      throw fileInvalid(
        file,
        `unknown setting ${quoted(name)}; ${nearest ? `did you mean "${nearest}"?` : `use ${known.join(", ")}`}`,
      );
    }
    if (typeof value !== "string") throw fileInvalid(file, `${quoted(name)} must be a string`);
  }
  const layer = layerOf(
    ({ field }) => textOf(fields[field]),
    ({ field }) => `${field} in ${file}`,
  );
  return { ...layer, notes };
}

function refuseUnknown(names: readonly string[], known: readonly string[], file: string): void {
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw fileInvalid(
    file,
    `unknown setting ${quoted(unknown)}; settings are under "spec", beside it only ${known.join(", ")}`,
  );
}

const ENVELOPE: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

function layerOf(read: (setting: DatastoreSetting) => string | undefined, nameOf: Layer["nameOf"]): Layer {
  const values = new Map<string, string>();
  for (const setting of DATASTORE_SETTINGS) {
    const value = read(setting);
    if (value !== undefined) values.set(setting.wire, value);
  }
  return { values, nameOf };
}

export interface Chosen {
  readonly value: string;
  readonly setting: DatastoreSetting;
  readonly name: string;
}

export function mergeLayers(layers: readonly Layer[]): ReadonlyMap<string, Chosen> {
  const chosen = new Map<string, Chosen>();
  let hasSource = false;
  for (const { values, nameOf } of layers) {
    for (const setting of DATASTORE_SETTINGS) {
      const value = values.get(setting.wire);
      const isHidden = hasSource && SOURCES_OF_ENDPOINTS.has(setting.wire);
      if (value === undefined || isHidden || chosen.has(setting.wire)) continue;
      chosen.set(setting.wire, { value, setting, name: nameOf(setting) });
    }
    hasSource ||= [...SOURCES_OF_ENDPOINTS].some((wire) => values.has(wire));
  }
  return chosen;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function fileInvalid(file: string, reason: string): PluginError {
  return new PluginError("config-invalid", `Cannot read settings from ${quoted(file)}: ${reason}`);
}
