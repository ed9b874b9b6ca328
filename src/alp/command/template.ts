import { withCluster } from "../../admin/cluster/access.ts";
import { findInstalledImage } from "../../admin/cluster/installed-image.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError } from "../../admin/main/command.ts";
import type { DatastoreAccess, Files, Terminal } from "../../admin/main/context.ts";
import { parseDocument } from "../../admin/manifest/parse-document.ts";
import { readText } from "../../admin/manifest/sources.ts";
import { namespaceOf } from "../../admin/resources/reference.ts";
import { PluginError } from "../../errors.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { quoted } from "../../quote.ts";
import { defaultImage } from "../../release/workloads/image.ts";
import { formatYaml } from "../../yaml.ts";
import {
  decodeConfigMap,
  type InjectorConfigMap,
  type MeshPlace,
  readInjector,
  readMeshVersion,
} from "../mesh/injector.ts";
import { inRelease, insertSidecar, removeSidecar, sidecarImageIn } from "../mesh/insert-sidecar.ts";
import { meshMinor, nearestMinorText } from "../mesh/mesh-minor.ts";
import { REMOVE_OPTION } from "./options.ts";

export async function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
  const { configMap, version, image } = await read(context, given);
  const present = sidecarImageIn(configMap.data.config);
  if (given.switches.has(REMOVE_OPTION.name)) {
    context.stdout(textOf(configMap, removeSidecar(configMap.data.config), given));
    context.stderr(present === undefined ? "The injector has no sidecar to remove\n" : `Removes ${present}\n`);
    return EXIT_OK;
  }
  const { config, isChanged } = insertSidecar(configMap.data.config, { minor: meshMinor(version), image });
  context.stdout(textOf(configMap, config, given));
  const nearest = nearestMinorText(version);
  if (nearest !== undefined) context.stderr(`${nearest[0]?.toUpperCase()}${nearest.slice(1)}\n`);
  context.stderr(noteOf({ image, present, isChanged, isGiven: given.values.has("image") }));
  return EXIT_OK;
}

interface Inserted {
  readonly image: string;
  readonly present: string | undefined;
  readonly isChanged: boolean;
  readonly isGiven: boolean;
}

function noteOf({ image, present, isChanged, isGiven }: Inserted): string {
  const hint = isGiven ? "" : " (--image changes it)";
  if (!isChanged) return `The injector has this sidecar already: ${image}${hint}\n`;
  return present === undefined || present === image
    ? `Image of the sidecar: ${image}${hint}\n`
    : `Replaces ${present} by ${image}${hint}\n`;
}

interface Read {
  readonly configMap: InjectorConfigMap;
  readonly version: string;
  readonly image: string;
}

async function read(context: DatastoreAccess, given: Given): Promise<Read> {
  const file = given.values.get("filename");
  const version = given.values.get("mesh-version");
  const isRemoved = given.switches.has(REMOVE_OPTION.name);
  refuse(given, isRemoved ? ["mesh-version", "image"] : [], `--${REMOVE_OPTION.name}`);
  const image = given.values.get("image");
  const named = image === undefined ? undefined : givenImage(image);
  const imageFor = async ({ data }: InjectorConfigMap, usual: () => Promise<string>) => {
    const present = sidecarImageIn(data.config);
    return named ?? inRelease(present ?? (await usual()), context.version);
  };
  if (file !== undefined) {
    refuse(given, ["revision", "namespace", "kubeconfig", "context"], "--filename");
    if (version === undefined && !isRemoved)
      throw new UsageError('"--filename" needs the version of the mesh: add --mesh-version');
    if (version !== undefined) meshMinor(version);
    const configMap = decodeConfigMap(await readDocument(context, file), file === "-" ? "stdin" : file);
    const usual = async () => defaultImage(context.version);
    return { configMap, version: version ?? "", image: await imageFor(configMap, usual) };
  }
  return withCluster(context, given, async (client) => {
    const objects = clusterObjects(client, context.signal);
    const place = placeOf(given);
    // An unknown version is refused before a missing ConfigMap is.
    const known = isRemoved ? "" : (version ?? (await readMeshVersion(objects, place)));
    if (!isRemoved) meshMinor(known);
    const configMap = await readInjector(objects, place);
    // Pods of all namespaces pull the sidecar from the registry of the installed product.
    const usual = async () => (await findInstalledImage(objects))?.name ?? defaultImage(context.version);
    return { configMap, version: known, image: await imageFor(configMap, usual) };
  });
}

/** Options that would have no effect. */
function refuse(given: Given, names: readonly string[], besides: string): void {
  const name = names.find((each) => given.values.has(each));
  if (name !== undefined) throw new UsageError(`--${name} and ${besides} cannot be combined`);
}

async function readDocument(context: Terminal & Files, file: string): Promise<unknown> {
  const parsed = parseDocument({ text: await readText(context, file), line: 1 });
  if (parsed.ok) return parsed.value;
  const place = file === "-" ? "stdin" : quoted(file);
  throw new PluginError("resource-invalid", `Cannot use ${place}: ${parsed.problems.join("; ")}`);
}

function placeOf(given: Given): MeshPlace {
  const revision = given.values.get("revision");
  return { namespace: namespaceOf(given) ?? "istio-system", ...(revision === undefined ? {} : { revision }) };
}

function textOf(configMap: InjectorConfigMap, config: string, given: Given): string {
  const format = given.values.get("output") ?? "yaml";
  if (format === "patch") return `${JSON.stringify({ data: { config } })}\n`;
  const { apiVersion = "v1", kind = "ConfigMap", metadata, data, ...others } = configMap;
  const kept = Object.fromEntries(Object.entries(metadata).filter(([name]) => !OF_THE_SERVER.has(name)));
  const object = { apiVersion, kind, metadata: kept, ...others, data: { ...data, config } };
  return format === "json" ? `${JSON.stringify(object, undefined, 2)}\n` : formatYaml(object);
}

/** What the API server writes itself. */
const OF_THE_SERVER = new Set([
  "managedFields",
  "resourceVersion",
  "uid",
  "creationTimestamp",
  "generation",
  "selfLink",
]);

const NAME = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const REGISTRY = /^(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:]+\])(?::\d+)?$/;
const SUFFIX = /^(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-fA-F]{2,})?$/;

/** Throws if the text of `--image` is not a reference of an image: it becomes part of a template, in which braces are expressions. */
function givenImage(image: string): string {
  const parts = image.split("/");
  const last = parts.pop() ?? "";
  const end = last.search(/[:@]/);
  const name = end === -1 ? last : last.slice(0, end);
  const [registry = "", ...path] = parts;
  const isValid =
    NAME.test(name) &&
    (end === -1 || SUFFIX.test(last.slice(end))) &&
    (parts.length === 0 || REGISTRY.test(registry)) &&
    path.every((part) => NAME.test(part));
  if (isValid) return image;
  throw new UsageError(
    `--image ${quoted(image)} is not the name of an image; write it as REGISTRY/PATH:TAG or REGISTRY/PATH@DIGEST`,
  );
}
