/**
 * What a pod of the mesh needs for application layer policy, as objects of the orchestrator's API:
 *
 *   node agent ── agent.sock ──> sidecar ── authorization.sock ──> the mesh's proxy
 *                 CSI volume                emptyDir, in memory
 *
 * Everything in `deploy/alp/` and everything that is inserted into the mesh's injector comes from here. Pure.
 */
import { identity } from "../../identity.ts";

/** Health and metrics of the sidecar. The mesh's proxy must not capture it. */
export const SIDECAR_PORT = 9098;
/** The sidecar runs as this user, and the node agent accepts no other on its socket. */
const SIDECAR_USER = 65532;
/** The engine's last compiler costs more memory than it saves time in a process with so little to do. */
export const SIDECAR_ENVIRONMENT = { BUN_JSC_useFTLJIT: "0" } as const;
/** The container of the mesh's proxy. */
export const PROXY_CONTAINER = "istio-proxy";

const POLICY_VOLUME = `${identity.sidecar}-policy`;
const AUTHORIZATION_VOLUME = `${identity.sidecar}-authorization`;
const POLICY_DIRECTORY = `${identity.runDirectory}/policy`;
const AUTHORIZATION_DIRECTORY = `${identity.runDirectory}/authorization`;
/** Where the sidecar listens for the questions of the proxy. */
export const AUTHORIZATION_SOCKET = `${AUTHORIZATION_DIRECTORY}/authorization.sock`;
/** Where the node agent listens. */
export const AGENT_SOCKET = `${POLICY_DIRECTORY}/agent.sock`;

export interface SidecarOptions {
  readonly image: string;
  /** A trust domain, or an expression of a template. */
  readonly trustDomain: string;
  /** Where filters of earlier releases ask: the sidecar listens there too, until they are replaced. */
  readonly earlierSocket?: string | undefined;
}

export function sidecarContainer({ image, trustDomain, earlierSocket }: SidecarOptions) {
  return {
    name: identity.sidecar,
    image,
    imagePullPolicy: "IfNotPresent",
    command: [identity.sidecar],
    args: [
      ...[`--agent=${AGENT_SOCKET}`, `--listen=${AUTHORIZATION_SOCKET}`, `--trust-domain=${trustDomain}`],
      ...(earlierSocket === undefined ? [] : [`--also-listen=${AUTHORIZATION_DIRECTORY}/${nameIn(earlierSocket)}`]),
    ],
    env: Object.entries(SIDECAR_ENVIRONMENT).map(([name, value]) => ({ name, value })),
    // None of liveness: whoever reaches the port could keep it from being answered.
    readinessProbe: { httpGet: { path: "/readiness", port: SIDECAR_PORT }, periodSeconds: 3, timeoutSeconds: 3 },
    resources: { requests: { cpu: "10m", memory: "64Mi" } },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsGroup: SIDECAR_USER,
      runAsNonRoot: true,
      runAsUser: SIDECAR_USER,
    },
    volumeMounts: [
      { name: POLICY_VOLUME, mountPath: POLICY_DIRECTORY, readOnly: true },
      { name: AUTHORIZATION_VOLUME, mountPath: AUTHORIZATION_DIRECTORY },
    ],
  };
}

/** What the mesh's proxy mounts besides its own: the same directory twice, if an earlier socket is asked too. */
export function proxyMounts(earlierSocket?: string) {
  const directories = [AUTHORIZATION_DIRECTORY, ...(earlierSocket === undefined ? [] : [directoryIn(earlierSocket)])];
  return directories.map((mountPath) => ({ name: AUTHORIZATION_VOLUME, mountPath, readOnly: true }));
}

function directoryIn(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function nameIn(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function sidecarVolumes() {
  return [
    {
      name: POLICY_VOLUME,
      csi: { driver: identity.csiDriver, readOnly: true, volumeAttributes: { user: String(SIDECAR_USER) } },
    },
    { name: AUTHORIZATION_VOLUME, emptyDir: { medium: "Memory" } },
  ];
}
