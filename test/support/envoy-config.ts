/**
 * A configuration of Envoy with external authorization:
 *
 *   client ──> listener (plain or mutual TLS) ──> filter ext_authz ──> upstream
 *                                                     │ gRPC over a unix socket
 *                                                     └──> authorizer
 *
 * Envoy denies while its authorizer is away. Pure.
 */
import { envoyAuthorization } from "../../src/alp/mesh/envoy-filter.ts";

export interface EnvoyPlan {
  readonly listeners: readonly EnvoyListener[];
  /** The unix socket of the authorizer; absent: nothing is asked. */
  readonly authorizer?: string;
  /** How long Envoy waits for a decision; absent: as in the mesh. */
  readonly decisionMilliseconds?: number;
  /** The unix socket of Envoy's own administration; absent: there is none. */
  readonly admin?: string;
}

export interface EnvoyListener {
  /** Requests, or whole connections that are not HTTP. */
  readonly kind: "http" | "tcp";
  /** Default: every IPv4 and IPv6 address. */
  readonly address?: string;
  readonly port: number;
  /** Files; present: clients must have a certificate of the authority. */
  readonly mutualTls?: { readonly cert: string; readonly key: string; readonly authority: string };
  /** Absent: Envoy responds itself to every request that is allowed. Only of HTTP. */
  readonly upstream?: Upstream;
}

interface Upstream {
  readonly address: string;
  readonly port: number;
}

/** Accepted as a file: YAML contains JSON. */
export function envoyConfig(plan: EnvoyPlan): string {
  return JSON.stringify({
    ...(plan.admin === undefined ? {} : { admin: { address: { pipe: { path: plan.admin } } } }),
    static_resources: {
      listeners: plan.listeners.map((listener) => listenerOf(listener, plan)),
      clusters: [
        ...plan.listeners.flatMap(({ port, upstream }) =>
          upstream === undefined ? [] : [clusterOf(upstreamName(port), socketAddress(upstream))],
        ),
        ...(plan.authorizer === undefined ? [] : [envoyAuthorization("v3", { socket: plan.authorizer }).cluster]),
      ],
    },
  });
}

function upstreamName(port: number): string {
  return `upstream-of-${port}`;
}

function listenerOf(listener: EnvoyListener, plan: EnvoyPlan): object {
  const { kind, address = "::", port, mutualTls } = listener;
  return {
    name: `listener-${port}`,
    address: { socket_address: { address, port_value: port, ipv4_compat: address === "::" } },
    filter_chains: [
      {
        filters:
          kind === "http" ? [httpManager(listener, plan)] : [...authorizationOf(plan, "network"), tcpProxy(port)],
        ...(mutualTls === undefined ? {} : { transport_socket: tlsSocket(mutualTls) }),
      },
    ],
  };
}

function httpManager({ port, upstream }: EnvoyListener, plan: EnvoyPlan): object {
  const response =
    upstream === undefined ? { direct_response: { status: 200 } } : { route: { cluster: upstreamName(port) } };
  return typed("envoy.filters.network.http_connection_manager", HTTP_MANAGER, {
    stat_prefix: `http_${port}`,
    codec_type: "AUTO",
    route_config: {
      virtual_hosts: [{ name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, ...response }] }],
    },
    http_filters: [...authorizationOf(plan, "http"), typed("envoy.filters.http.router", HTTP_ROUTER, {})],
  });
}

/** As in the mesh. */
function authorizationOf(plan: EnvoyPlan, kind: "http" | "network"): readonly object[] {
  const { authorizer: socket, decisionMilliseconds } = plan;
  if (socket === undefined) return [];
  const timeout = decisionMilliseconds === undefined ? {} : { timeout: `${decisionMilliseconds / 1000}s` };
  return [envoyAuthorization("v3", { socket, ...timeout })[kind]];
}

function tcpProxy(port: number): object {
  const cluster = upstreamName(port);
  return typed("envoy.filters.network.tcp_proxy", TCP_PROXY, { stat_prefix: `tcp_${port}`, cluster });
}

function tlsSocket({ cert, key, authority }: NonNullable<EnvoyListener["mutualTls"]>): object {
  return typed("envoy.transport_sockets.tls", DOWNSTREAM_TLS, {
    require_client_certificate: true,
    common_tls_context: {
      tls_certificates: [{ certificate_chain: { filename: cert }, private_key: { filename: key } }],
      validation_context: { trusted_ca: { filename: authority } },
    },
  });
}

function clusterOf(name: string, address: object): object {
  const endpoints = [{ lb_endpoints: [{ endpoint: { address } }] }];
  return { name, type: "STATIC", connect_timeout: "1s", load_assignment: { cluster_name: name, endpoints } };
}

function socketAddress({ address, port }: Upstream): object {
  return { socket_address: { address, port_value: port } };
}

const TYPES = "type.googleapis.com/";
const HTTP_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const HTTP_ROUTER = "envoy.extensions.filters.http.router.v3.Router";
const TCP_PROXY = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";
const DOWNSTREAM_TLS = "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext";

function typed(name: string, type: string, fields: object): object {
  return { name, typed_config: { "@type": `${TYPES}${type}`, ...fields } };
}
