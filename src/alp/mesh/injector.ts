/** The injector of the mesh in a cluster: its ConfigMap, and the version of the mesh. */
import * as v from "valibot";
import { PluginError } from "../../errors.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { decodeShape } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";

/** Which mesh of the cluster: several revisions can run at once. */
export interface MeshPlace {
  readonly namespace: string;
  readonly revision?: string;
}

const configMapShape = v.looseObject({
  metadata: v.optional(v.record(v.string(), v.unknown()), {}),
  data: v.looseObject({ config: v.string() }),
});

export type InjectorConfigMap = v.InferOutput<typeof configMapShape>;

/** `place`: for messages. */
export function decodeConfigMap(value: unknown, place: string): InjectorConfigMap {
  const decoded = decodeShape(configMapShape, value);
  if (decoded.ok) return decoded.value;
  throw new PluginError("resource-invalid", `Cannot use ${place}: it is not the ConfigMap of an injector`, {
    details: 'its "data.config" must be a text',
  });
}

export function injectorPath(place: MeshPlace): string {
  return `/api/v1/namespaces/${place.namespace}/configmaps/${injectorName(place)}`;
}

function injectorName(place: MeshPlace): string {
  return nameIn("istio-sidecar-injector", place);
}

export async function readInjector(objects: ClusterObjects, place: MeshPlace): Promise<InjectorConfigMap> {
  const name = injectorName(place);
  const path = injectorPath(place);
  const found = await objects.read(path);
  if (found === undefined) {
    throw new PluginError(
      "resource-missing",
      `Cannot find ConfigMap ${quoted(`${place.namespace}/${name}`)}: no such object`,
      {
        details: "name the mesh with --namespace and --revision",
      },
    );
  }
  return decodeConfigMap({ apiVersion: "v1", kind: "ConfigMap", ...found }, path);
}

const deploymentShape = v.object({
  metadata: v.object({ labels: v.optional(v.record(v.string(), v.string()), {}) }),
  spec: v.object({
    template: v.object({
      metadata: v.optional(v.object({ labels: v.optional(v.record(v.string(), v.string()), {}) }), {}),
      spec: v.object({ containers: v.array(v.object({ image: v.optional(v.string(), "") })) }),
    }),
  }),
});

/** By the tag of the control plane's image; by its labels, if the image is named by its digest. */
export async function readMeshVersion(objects: ClusterObjects, place: MeshPlace): Promise<string> {
  const name = nameIn("istiod", place);
  const path = `/apis/apps/v1/namespaces/${place.namespace}/deployments/${name}`;
  const version = versionIn(await objects.read(path));
  if (version !== undefined) return version;
  throw new PluginError(
    "resource-missing",
    `Cannot tell the version of the mesh from Deployment ${quoted(`${place.namespace}/${name}`)}`,
    {
      details: "name it with --mesh-version",
    },
  );
}

function versionIn(deployment: Fields | undefined): string | undefined {
  const decoded = decodeShape(deploymentShape, deployment);
  if (!decoded.ok) return undefined;
  const { metadata, spec } = decoded.value;
  const tags = spec.template.spec.containers.map(({ image }) => tagOf(image) ?? "");
  const labels = [spec.template.metadata.labels ?? {}, metadata.labels];
  const named = labels.flatMap((each) => VERSION_LABELS.map((label) => each[label] ?? ""));
  return [...tags, ...named].find((text) => /^v?\d+\.\d+/.test(text));
}

const VERSION_LABELS = ["operator.istio.io/version", "app.kubernetes.io/version"];

/** Of `registry:5000/istio/pilot:1.15.3`. */
function tagOf(image: string): string | undefined {
  return /:([^/:@]+)(?:@.*)?$/.exec(image)?.[1];
}

function nameIn(name: string, { revision }: MeshPlace): string {
  return revision === undefined || revision === "default" ? name : `${name}-${revision}`;
}
