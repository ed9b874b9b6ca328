/**
 * The pod whose requests are decided: an application, Envoy in front of it, and the sidecar that Envoy asks.
 *
 *   8080 plain, 8443 mutual TLS, 9000 TCP ──> Envoy ──> application on port 80
 *                                              │ authorization.sock (volume in memory)
 *                                           sidecar ──> agent.sock (volume of the node agent's CSI driver)
 */
import {
  AUTHORIZATION_SOCKET,
  proxyMounts,
  sidecarContainer,
  sidecarVolumes,
} from "../../src/alp/mesh/sidecar-parts.ts";
import { envoyConfig } from "../support/envoy-config.ts";
import { ENVOY_IMAGE } from "../support/envoy-image.ts";
import { AGNHOST_IMAGE } from "../support/kube-images.ts";

export const TRUST_DOMAIN = "cluster.local";
export const PORTS = { plain: 8080, mutualTls: 8443, tcp: 9000, application: 80 } as const;

export interface ServedPod {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly node: string;
  /** The product's, for the sidecar; absent: Envoy asks, and there is no sidecar that responds. */
  readonly image?: string;
}

export interface ServerCertificate {
  /** The texts of PEM files. */
  readonly cert: string;
  readonly key: string;
  readonly authority: string;
}

const CONFIGURATION = "envoy";
const CERTIFICATES = "/etc/certificates";
const ENVOY_USER = 1337;

/** Configuration and certificates of Envoy, for all such pods of a namespace. */
export function envoyObjects(namespace: string, { cert, key, authority }: ServerCertificate): readonly object[] {
  const mutualTls = {
    cert: `${CERTIFICATES}/tls.crt`,
    key: `${CERTIFICATES}/tls.key`,
    authority: `${CERTIFICATES}/ca.crt`,
  };
  const upstream = { address: "127.0.0.1", port: PORTS.application };
  const config = envoyConfig({
    authorizer: AUTHORIZATION_SOCKET,
    listeners: [
      { kind: "http", port: PORTS.plain, upstream },
      { kind: "http", port: PORTS.mutualTls, mutualTls, upstream },
      { kind: "tcp", port: PORTS.tcp, upstream },
    ],
  });
  const metadata = { name: CONFIGURATION, namespace };
  return [
    { apiVersion: "v1", kind: "ConfigMap", metadata, data: { "envoy.json": config } },
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata,
      stringData: { "tls.crt": cert, "tls.key": key, "ca.crt": authority },
    },
  ];
}

export function servedPod({ name, namespace, labels, node, image }: ServedPod): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels },
    spec: {
      nodeName: node,
      terminationGracePeriodSeconds: 1,
      containers: [
        APPLICATION,
        ENVOY,
        ...(image === undefined ? [] : [sidecarContainer({ image, trustDomain: TRUST_DOMAIN })]),
      ],
      volumes: [
        { name: "configuration", configMap: { name: CONFIGURATION } },
        { name: "certificates", secret: { secretName: CONFIGURATION } },
        ...sidecarVolumes(),
      ],
    },
  };
}

const RESOURCES = { requests: { cpu: "100m" } };

const APPLICATION = {
  name: "application",
  image: AGNHOST_IMAGE,
  imagePullPolicy: "Never",
  resources: RESOURCES,
  args: ["netexec", `--http-port=${PORTS.application}`, "--udp-port=-1"],
};

const ENVOY = {
  name: "envoy",
  image: ENVOY_IMAGE,
  imagePullPolicy: "Never",
  resources: RESOURCES,
  args: ["--config-path", "/etc/envoy/envoy.json", "--concurrency", "1", "--disable-hot-restart", "-l", "warning"],
  securityContext: { runAsUser: ENVOY_USER },
  volumeMounts: [
    { name: "configuration", mountPath: "/etc/envoy" },
    { name: "certificates", mountPath: CERTIFICATES },
    ...proxyMounts(),
  ],
};
