/**
 * Inserts the sidecar into, and removes it from, the configuration of the mesh's injector: the text `data.config` of its ConfigMap, with whatever
 * its users have changed in it. Nothing else of the text changes.
 *
 * A second run changes nothing; the sidecar of another release is replaced. Throws if the text has no place for it. Pure.
 */
import { identity } from "../../identity.ts";
import { formatYaml } from "../../yaml.ts";
import { type MeshMinor, rowOf } from "./mesh-minor.ts";
import { insertIntoOneTemplate, withoutMarked } from "./one-template.ts";
import { insertOwnTemplate, withoutOwnTemplate } from "./several-templates.ts";
import {
  EXCLUDED_PORTS,
  EXCLUDED_PORTS_AND_OURS,
  MESH_TEMPLATE,
  refused,
  type SidecarRelease,
} from "./template-parts.ts";
import { isLiteral, spanOfKey, spanOfMember } from "./yaml-lines.ts";

export interface InsertedSidecar {
  readonly config: string;
  readonly isChanged: boolean;
}

export function insertSidecar(config: string, release: SidecarRelease): InsertedSidecar {
  const hasSeveral = rowOf(release.minor).templates === "several";
  const texts = templatesOf(config, release.minor);
  refuseOthers(texts);
  refuseNativeProxy(texts);
  const lines = editableLines(config, hasSeveral);
  const insert = hasSeveral ? insertOwnTemplate : insertIntoOneTemplate;
  const inserted = `${excludePort(insert(lines, release).join("\n")).trimEnd()}\n`;
  return { config: inserted, isChanged: inserted !== config };
}

/** The inverse of `insertSidecar()`. A configuration without the sidecar stays as it is. */
export function removeSidecar(config: string): string {
  const lines = withoutMarked(withoutOwnTemplate(config.split("\n")));
  return lines.join("\n").replaceAll(EXCLUDED_PORTS_AND_OURS, EXCLUDED_PORTS);
}

/** `mirror:5000/own/vendor:v1@sha256:…` in another release. */
export function inRelease(image: string, version: string): string {
  return `${image.replace(/@.*$/, "").replace(/:[^/:]*$/, "")}:${version}`;
}

/** The image of the sidecar that the configuration gives to new pods. */
export function sidecarImageIn(config: string): string | undefined {
  const lines = config.split("\n");
  const name = lines.findIndex((line) => line.trim() === `- name: ${identity.sidecar}`);
  const image = name === -1 ? undefined : /^ *image: *"?([^\s"]+)"?$/.exec(lines[name + 1] ?? "");
  return image?.[1];
}

/** Throws if they are not where the minor has them. */
function templatesOf(config: string, minor: MeshMinor): readonly string[] {
  const { template, templates } = parsed(config);
  const texts = Object.entries(templates ?? {});
  if (rowOf(minor).templates === "several") {
    if (typeof templates?.[MESH_TEMPLATE] === "string") return texts.map(([, text]) => String(text));
    const older = typeof template === "string" ? ': its "template" is that of mesh 1.7 or older' : "";
    throw refused(`it has no "templates.${MESH_TEMPLATE}", as mesh ${minor} has${older}`);
  }
  if (texts.length > 0)
    throw refused(`it has "templates", as mesh 1.9 and newer have; mesh ${minor} has one "template"`);
  if (typeof template !== "string") throw refused(`it has no "template"`);
  return [template];
}

interface InjectorConfig {
  readonly template?: unknown;
  readonly templates?: Readonly<Record<string, unknown>> | null;
}

function parsed(config: string): InjectorConfig {
  const value = parseYaml(config);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw refused("it is not a YAML object");
}

function parseYaml(config: string): unknown {
  try {
    return Bun.YAML.parse(config);
  } catch (cause) {
    throw refused(`it is not YAML: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}

const OTHER_SIDECAR = /^\s*(?:- )?(?:name: *["']?dikastes["']?\s*$|image: .*\bdikastes\b)/m;

function refuseOthers(texts: readonly string[]): void {
  if (!texts.some((text) => OTHER_SIDECAR.test(text))) return;
  throw refused(
    'it has a container "dikastes", the sidecar of another product; restore the template of the mesh first, since a proxy asks one sidecar',
  );
}

/** Ours is merged into the container of the proxy: it would become a second container where the proxy is an init container. */
const NATIVE_PROXY = /native_?sidecar/i;

function refuseNativeProxy(texts: readonly string[]): void {
  if (!texts.some((text) => NATIVE_PROXY.test(text))) return;
  throw refused(
    "its proxy can be an init container (native sidecar), and the sidecar is only inserted beside a proxy that is a container",
  );
}

/** In block style; a text in another style is written again. */
function editableLines(config: string, hasSeveral: boolean): readonly string[] {
  for (const text of [config, formatYaml(Bun.YAML.parse(config))]) {
    const lines = text.trimEnd().split("\n");
    if (isEditable(lines, hasSeveral)) return lines;
  }
  throw refused("its templates are not literal blocks, and contain characters that cannot be written as such");
}

function isEditable(lines: readonly string[], hasSeveral: boolean): boolean {
  const key = spanOfKey(lines, hasSeveral ? "templates" : "template");
  if (key === undefined || !hasSeveral) return isLiteral(lines[key?.first ?? -1]);
  const template = spanOfMember(lines, key, MESH_TEMPLATE);
  return template !== undefined && isLiteral(lines[template.first]);
}

function excludePort(config: string): string {
  const without = config.replaceAll(EXCLUDED_PORTS_AND_OURS, EXCLUDED_PORTS);
  if (without.includes(EXCLUDED_PORTS)) return without.replaceAll(EXCLUDED_PORTS, EXCLUDED_PORTS_AND_OURS);
  throw refused(`it does not contain the expression "${EXCLUDED_PORTS}", which the port of the sidecar is added to`);
}
