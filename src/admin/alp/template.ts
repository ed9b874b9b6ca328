import { insertSidecar } from "../../mesh/insert-sidecar.ts";
import { MESH_MINORS, meshMinor } from "../../mesh/mesh-minor.ts";
import { formatYaml } from "../../yaml.ts";
import { CLUSTER_OPTIONS, withCluster } from "../cluster/access.ts";
import { defaultImage, findInstalledImage } from "../cluster/installed-image.ts";
import { type ClusterObjects, clusterObjects } from "../cluster/objects.ts";
import { type Command, type Context, EXIT_OK, type Given, UsageError } from "../command.ts";
import { parseDocument } from "../resources/parse-document.ts";
import { namespaceOf } from "../resources/reference.ts";
import { readText } from "../resources/sources.ts";
import { decodeConfigMap, type InjectorConfigMap, type MeshPlace, readInjector, readMeshVersion } from "./injector.ts";

export const alpTemplate: Command = {
  kind: "command",
  name: "template",
  summary: "Print the configuration of the mesh's injector with the sidecar inserted",
  description: [
    "Reads the ConfigMap of the injector, from the cluster or from a file, and prints it with the sidecar for application layer policy;",
    "whatever else it contains stays as it is. Nothing in the cluster is changed: apply what is printed, then restart the workloads.",
    "If the sidecar is there already, it is replaced by that of this release; a second run changes nothing.",
    `There are templates for the mesh ${MESH_MINORS.join(", ")}; every other version is refused.`,
  ].join("\n"),
  options: [
    {
      name: "mesh-version",
      value: "VERSION",
      summary: "Version of the mesh, such as 1.15 or 1.15.3 (default: that of its control plane in the cluster)",
    },
    {
      name: "filename",
      letter: "f",
      value: "FILE",
      summary: "Read the ConfigMap from a file, or from standard input (-)",
    },
    { name: "namespace", letter: "n", value: "NAMESPACE", summary: "Namespace of the mesh (default: istio-system)" },
    { name: "revision", value: "NAME", summary: "Revision of the mesh, if it has one" },
    {
      name: "image",
      value: "IMAGE",
      summary: "Image of the sidecar (default: that of the node agents, in this release)",
    },
    ...CLUSTER_OPTIONS,
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["yaml", "json", "patch"],
      summary: "Output format: yaml (default), json, or patch, a merge patch of the ConfigMap",
    },
  ],
  examples: [
    { command: "alp template | kubectl apply -f -", does: "Insert the sidecar into the injector of the cluster" },
    {
      command: "alp template --revision canary -o patch > patch.json",
      does: "As a merge patch for the injector of a revision",
    },
    {
      command: "alp template --mesh-version 1.15 -f injector.yaml",
      does: "Of a ConfigMap in a file, without a cluster",
    },
  ],
  async run(context, given) {
    const { configMap, version, image } = await read(context, given);
    const minor = meshMinor(version);
    const { config, isChanged, formerImage } = insertSidecar(configMap.data.config, { minor, image });
    context.stdout(textOf(configMap, config, given.values.get("output") ?? "yaml"));
    if (!isChanged) context.stderr(`The injector has this sidecar already: ${image}\n`);
    else if (formerImage !== undefined) context.stderr(`Replaces ${formerImage} by ${image}\n`);
    return EXIT_OK;
  },
};

interface Read {
  readonly configMap: InjectorConfigMap;
  readonly version: string;
  readonly image: string;
}

async function read(context: Context, given: Given): Promise<Read> {
  const file = given.values.get("filename");
  const version = given.values.get("mesh-version");
  const image = given.values.get("image");
  if (file !== undefined) {
    if (version === undefined) throw new UsageError('"--filename" needs the version of the mesh: add --mesh-version');
    const configMap = decodeConfigMap(await readDocument(context, file), file === "-" ? "stdin" : file);
    return { configMap, version, image: image ?? defaultImage(context.version) };
  }
  return withCluster(context, given, async (client) => {
    const objects = clusterObjects(client, context.signal);
    const place = placeOf(given);
    // An unknown version is refused before a missing ConfigMap is.
    const known = version ?? (await readMeshVersion(objects, place));
    meshMinor(known);
    const configMap = await readInjector(objects, place);
    return { configMap, version: known, image: image ?? (await imageIn(objects, context.version)) };
  });
}

async function readDocument(context: Context, file: string): Promise<unknown> {
  const parsed = parseDocument({ text: await readText(context, file), line: 1 });
  if (parsed.ok) return parsed.value;
  throw new UsageError(`${file === "-" ? "stdin" : file}: ${parsed.problems.join("; ")}`);
}

function placeOf(given: Given): MeshPlace {
  const revision = given.values.get("revision");
  return { namespace: namespaceOf(given) ?? "istio-system", ...(revision === undefined ? {} : { revision }) };
}

/** From the registry of the installed product: pods of all namespaces pull the sidecar from there. */
async function imageIn(objects: ClusterObjects, version: string): Promise<string> {
  const installed = await findInstalledImage(objects);
  if (installed === undefined) return defaultImage(version);
  return `${installed.name.replace(/@.*$/, "").replace(/:[^/:]*$/, "")}:${version}`;
}

function textOf(configMap: InjectorConfigMap, config: string, format: string): string {
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
