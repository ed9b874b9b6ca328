/**
 * Everything that can be said about a file with a network config or a list of
 * them: each finding with its place in the file.
 *
 * The fields of other plugins are their own business; only the structure of the
 * list around them is looked at.
 */
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import { decodeNetwork, networkProblems } from "../cni/network-list.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { unreadableFiles } from "../config/config-files.ts";
import { decodeNetworkConfig } from "../config/decode.ts";
import { effectiveConfig } from "../config/effective.ts";
import { type ConfigPath, pathText } from "../config/problem.ts";
import { redactAll, redactValue } from "../config/redact.ts";
import { unknownKeyText } from "../config/unknown-key.ts";
import { identity } from "../identity.ts";
import { nearestName } from "../model/nearest-name.ts";
import { locateJson, type Position } from "./json-places.ts";

export interface FileFinding extends Position {
  readonly severity: "error" | "warning";
  /** Full path inside the file: `plugins[0].ipam.assign_ipv4`. */
  readonly path: string;
  readonly message: string;
}

export interface FileReport {
  /** In the order they stand in the file. */
  readonly findings: readonly FileFinding[];
  /** The file with all defaults filled in; absent when it has errors. */
  readonly effective: unknown;
}

interface Finding {
  readonly severity: "error" | "warning";
  readonly path: ConfigPath;
  readonly message: string;
}

export interface CheckOptions {
  /** Whether the key, certificate and kubeconfig files a config names are looked for. */
  readonly looksForFiles: boolean;
}

export async function checkNetworkFile(text: string, options: CheckOptions): Promise<FileReport> {
  const places = locateJson(text);
  if (!places.ok) {
    const message = `This is not JSON: ${places.reason}`;
    return { findings: [{ severity: "error", path: "", message, ...places.position }], effective: undefined };
  }
  const raw: unknown = JSON.parse(text);
  const found = isJsonObject(raw)
    ? await checkNetwork(raw, options)
    : [error([], "A network config is an object: write { … }")];
  const placed = found.map(({ severity, path, message }) => ({
    severity,
    path: redactValue(pathText(path)),
    message,
    ...places.find(path),
  }));
  const repeated = places.repeated.map(({ path, position }) => repetition(path, position));
  const findings = [...placed, ...repeated].sort((left, right) => left.line - right.line || left.column - right.column);
  const isWell = found.every(({ severity }) => severity === "warning");
  return { findings, effective: isWell && isJsonObject(raw) ? effectiveNetwork(raw) : undefined };
}

/** Runtimes and plugins take the last and say nothing. */
function repetition(path: ConfigPath, position: Position): FileFinding {
  const place = redactValue(pathText(path));
  const message = `"${place}" is given more than once: only this last one counts; remove the others`;
  return { severity: "warning", path: place, message, ...position };
}

async function checkNetwork(raw: JsonObject, options: CheckOptions): Promise<readonly Finding[]> {
  const found = structure(raw);
  if (!isList(raw))
    return isOurs(raw) ? merged(await checkConfig(raw, [], options), found) : [...found, ...stranger(raw)];

  const entries = entriesOf(raw);
  const ours = await Promise.all(
    entries.map((entry, index) => (isOurs(entry) ? checkConfig(asCalled(entry), ["plugins", index], options) : [])),
  );
  const strangers = entries.some(isOurs)
    ? []
    : [warning(["plugins"], `No plugin of the list is "${identity.product}"`)];
  return [...merged(found, ours.flat()), ...strangers];
}

/** A missing type is a fault of the list and of the config in it: once is enough. */
function merged(first: readonly Finding[], second: readonly Finding[]): readonly Finding[] {
  const told = new Set(first.map(({ path }) => pathText(path)));
  return [...first, ...second.filter(({ path }) => !told.has(pathText(path)))];
}

async function checkConfig(
  config: JsonObject,
  place: ConfigPath,
  { looksForFiles }: CheckOptions,
): Promise<readonly Finding[]> {
  const decoded = decodeNetworkConfig(config);
  const missingFiles = looksForFiles ? await unreadableFiles(decoded.files) : [];
  const problems = [...(decoded.ok ? [] : decoded.problems), ...missingFiles];
  const prefix = place.length === 0 ? "" : `${pathText(place)}: `;
  return [
    ...problems.map(({ path, message }) => error([...place, ...path], `${prefix}${message}`)),
    ...decoded.warnings.map(({ path, message }) => warning([...place, ...path], `${prefix}${message}`)),
    ...decoded.unknownKeys.map((path) => warning([...place, ...path], `${prefix}${unknownKeyText(path)}`)),
  ];
}

/** What makes the runtime refuse the network before any plugin sees it. */
function structure(raw: JsonObject): readonly Finding[] {
  return networkProblems(raw).map(({ path, state }) => error(path, redactValue(state)));
}

function stranger(raw: JsonObject): readonly Finding[] {
  const type = String(raw["type"]);
  const meant = nearestName(type, [identity.product]);
  const hint = meant === undefined ? "" : `; did you mean "${meant}"?`;
  return [warning(["type"], redactValue(`"type" is "${type}", another plugin: its fields are not checked${hint}`))];
}

/** A config without a type is taken for ours, so that its author learns what else is wrong. */
function isOurs(entry: unknown): entry is JsonObject {
  return isJsonObject(entry) && (entry["type"] === undefined || entry["type"] === identity.product);
}

function isList(raw: JsonObject): boolean {
  return "plugins" in raw || "loadOnlyInlinedPlugins" in raw;
}

function entriesOf(raw: JsonObject): readonly unknown[] {
  const entries: unknown = raw["plugins"];
  return Array.isArray(entries) ? entries : [];
}

/** The runtime gives each plugin the list's name and version, which `structure` has checked. */
function asCalled(entry: JsonObject): JsonObject {
  return { ...entry, name: "network", cniVersion: NEWEST_VERSION };
}

function effectiveNetwork(raw: JsonObject): unknown {
  if (!isList(raw)) return isOurs(raw) ? effectiveConfig(raw) : redactAll(raw);
  const { name, cniVersion } = decodeNetwork(raw);
  const plugins = entriesOf(raw).map((entry) =>
    isOurs(entry) ? effectiveConfig({ ...entry, name, cniVersion }) : redactAll(entry),
  );
  return { ...(redactAll(raw) as JsonObject), name, cniVersion, plugins };
}

function error(path: ConfigPath, message: string): Finding {
  return { severity: "error", path, message };
}

function warning(path: ConfigPath, message: string): Finding {
  return { severity: "warning", path, message };
}
