/** The image that the cluster runs the product from: a copy of a private registry keeps its name and its pull secrets. */
import * as v from "valibot";
import { identity } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { decodeShape } from "../../model/shape.ts";

const daemonSet = v.object({
  metadata: v.object({ namespace: v.string() }),
  spec: v.object({
    template: v.object({
      spec: v.object({
        imagePullSecrets: v.optional(v.array(v.object({ name: v.string() }))),
        containers: v.array(v.object({ name: v.string(), image: v.string() })),
      }),
    }),
  }),
});

export interface InstalledImage {
  readonly name: string;
  /** Secrets to pull it, in `namespace`. */
  readonly pullSecrets: readonly string[];
  readonly namespace: string;
}

/** Where the node agents run: installed by the operator, or by a manifest. */
export const COMPONENT_NAMESPACES = [identity.systemNamespace, "kube-system"] as const;

/** `undefined` if no DaemonSet runs the node agents. */
export async function findInstalledImage(objects: ClusterObjects): Promise<InstalledImage | undefined> {
  for (const namespace of COMPONENT_NAMESPACES) {
    const path = `/apis/apps/v1/namespaces/${namespace}/daemonsets/${identity.nodeAgent}`;
    const found = imageIn(await objects.read(path));
    if (found !== undefined) return found;
  }
  return undefined;
}

function imageIn(object: unknown): InstalledImage | undefined {
  const decoded = decodeShape(daemonSet, object);
  if (!decoded.ok) return undefined;
  const { metadata, spec } = decoded.value;
  const { containers, imagePullSecrets = [] } = spec.template.spec;
  const container = containers.find(({ name }) => name === identity.nodeAgent) ?? containers[0];
  if (container === undefined) return undefined;
  return {
    name: container.image,
    pullSecrets: imagePullSecrets.map(({ name }) => name),
    namespace: metadata.namespace,
  };
}
