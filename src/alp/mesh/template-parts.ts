/** The texts that are inserted into the mesh's injector. Pure. */
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { formatYaml } from "../../yaml.ts";
import { type MeshMinor, rowOf } from "./mesh-minor.ts";
import { PROXY_CONTAINER, proxyMounts, SIDECAR_PORT, sidecarContainer, sidecarVolumes } from "./sidecar-parts.ts";

/** What is inserted, and into which mesh. */
export interface SidecarRelease {
  readonly minor: MeshMinor;
  readonly image: string;
  /** Where filters of earlier releases ask. */
  readonly earlierSocket?: string | undefined;
}

/** The name of our own template, in meshes that merge several. */
export const OWN_TEMPLATE = identity.sidecar;

/** The mesh's own template, and the one that is used if nothing else is configured. */
export const MESH_TEMPLATE = "sidecar";

/** Our template: what is merged into a pod that the mesh's own template was merged into. */
export function ownTemplate(release: SidecarRelease): string {
  const proxy = { name: PROXY_CONTAINER, volumeMounts: proxyMounts(release.earlierSocket) };
  const containers = [proxy, containerFor(release)];
  return formatYaml({ spec: { containers, volumes: sidecarVolumes() } });
}

/** A line of a mesh's single template, and the text that follows it. */
export interface InsertedPart {
  readonly place: Place;
  readonly text: string;
}

export type Place = "containers" | "proxy mounts" | "volumes";

export const PLACE_WORDS: Readonly<Record<Place, string>> = {
  containers: 'the line "containers:" at the beginning of the template\'s lines',
  "proxy mounts": `the line "volumeMounts:" of the container "${PROXY_CONTAINER}"`,
  volumes: 'the line "volumes:" at the beginning of the template\'s lines',
};

/** In the order of the template. */
export function insertedParts(release: SidecarRelease): readonly InsertedPart[] {
  return [
    { place: "containers", text: formatYaml([containerFor(release)]) },
    { place: "proxy mounts", text: formatYaml(proxyMounts(release.earlierSocket)) },
    { place: "volumes", text: formatYaml(sidecarVolumes()) },
  ];
}

function containerFor({ minor, image, earlierSocket }: SidecarRelease) {
  return sidecarContainer({ image, trustDomain: `{{ ${rowOf(minor).trustDomain} }}`, earlierSocket });
}

/**
 * An expression of the mesh's template: the ports of a pod that the proxy does not capture. It occurs in the arguments of
 * the init container and, for the mesh's CNI plugin, in an annotation of the pod.
 */
export const EXCLUDED_PORTS =
  "(annotation .ObjectMeta `traffic.sidecar.istio.io/excludeInboundPorts` .Values.global.proxy.excludeInboundPorts)";

/** The same, and the port of the sidecar. */
export const EXCLUDED_PORTS_AND_OURS = `(excludeInboundPort ${SIDECAR_PORT} ${EXCLUDED_PORTS})`;

/** `reason`: what the configuration of the injector has or lacks. */
export function refused(reason: string): PluginError {
  return new PluginError(
    "resource-invalid",
    `Cannot insert the sidecar into the configuration of the injector: ${reason}`,
  );
}
