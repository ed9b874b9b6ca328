/**
 * What the mesh's proxy is told to do: before a request reaches the application, it asks the sidecar, over the unix socket
 * that both have mounted. The proxy denies while the sidecar does not answer. Pure.
 */
import { identity } from "../../identity.ts";
import { AUTHORIZATION_SOCKET } from "./sidecar-parts.ts";

/**
 * `v2`: Envoy 1.14, of mesh 1.6, which only speaks version 2 of the authorization service; `v3-first`: Envoy 1.15, of
 * mesh 1.7, which has other options for HTTP/2; `v3`: Envoy 1.17 and later.
 */
export type FilterForm = "v2" | "v3-first" | "v3";

/** The part of Envoy's own configuration: a cluster and two filters. */
export interface EnvoyAuthorization {
  readonly cluster: EnvoyObject;
  /** For requests: a filter of the HTTP connection manager, before the router. */
  readonly http: EnvoyObject;
  /** For connections that are not HTTP: a network filter, before the TCP proxy. */
  readonly network: EnvoyObject;
}

export interface AuthorizationOptions {
  readonly socket?: string;
  /** How long the proxy waits for a decision, as `0.5s`. */
  readonly timeout?: string;
}

export interface EnvoyObject {
  readonly name: string;
  readonly [field: string]: unknown;
}

const CLUSTER = identity.sidecar;
const TYPES = "type.googleapis.com/";
const DECISION_TIMEOUT = "0.5s";
const CONNECT_TIMEOUT = "0.25s";

export function envoyAuthorization(
  form: FilterForm,
  { socket = AUTHORIZATION_SOCKET, timeout = DECISION_TIMEOUT }: AuthorizationOptions = {},
): EnvoyAuthorization {
  const names = NAMES[form];
  const question = {
    grpc_service: { envoy_grpc: { cluster_name: CLUSTER }, timeout },
    failure_mode_allow: false,
    ...(form === "v2" ? {} : { transport_api_version: "V3" }),
  };
  return {
    cluster: clusterOf(form, socket),
    http: { name: names.http, ...configOf(names.httpType, question) },
    network: { name: names.network, ...configOf(names.networkType, { stat_prefix: statPrefix(), ...question }) },
  };
}

/** The object of the mesh that adds it to the proxies of all pods; in another namespace than `istio-system`, to those of that namespace. */
export function envoyFilterObject(form: FilterForm) {
  const { cluster, http, network } = envoyAuthorization(form);
  const names = NAMES[form];
  const context = "SIDECAR_INBOUND";
  const inFilter = (filter: object) => ({ context, listener: { filterChain: { filter } } });
  return {
    apiVersion: "networking.istio.io/v1alpha3",
    kind: "EnvoyFilter",
    metadata: { name: identity.sidecar, namespace: "istio-system" },
    spec: {
      configPatches: [
        { applyTo: "CLUSTER", match: { context }, patch: { operation: "ADD", value: cluster } },
        {
          applyTo: "NETWORK_FILTER",
          match: inFilter({ name: names.tcpProxy }),
          patch: { operation: "INSERT_BEFORE", value: network },
        },
        {
          applyTo: "HTTP_FILTER",
          match: inFilter({ name: names.manager, subFilter: { name: names.router } }),
          patch: { operation: "INSERT_BEFORE", value: http },
        },
      ],
    },
  };
}

/** Mesh 1.6 does not know the types of all filters, and passes on a configuration without type. */
function configOf(type: string | undefined, config: object) {
  return type === undefined ? { config } : { typed_config: { "@type": `${TYPES}${type}`, ...config } };
}

function clusterOf(form: FilterForm, socket: string): EnvoyObject {
  const address = { pipe: { path: socket } };
  return {
    name: CLUSTER,
    type: "STATIC",
    connect_timeout: CONNECT_TIMEOUT,
    load_assignment: { cluster_name: CLUSTER, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
    ...(form === "v3" ? { typed_extension_protocol_options: HTTP2_EXTENSION } : { http2_protocol_options: {} }),
  };
}

const HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
const HTTP2_EXTENSION = {
  [HTTP_OPTIONS]: { "@type": `${TYPES}${HTTP_OPTIONS}`, explicit_http_config: { http2_protocol_options: {} } },
};

function statPrefix(): string {
  return identity.sidecar.replaceAll("-", "_");
}

interface Names {
  readonly http: string;
  readonly httpType?: string;
  readonly network: string;
  readonly networkType?: string;
  readonly tcpProxy: string;
  readonly manager: string;
  readonly router: string;
}

const NEW_NAMES: Names = {
  http: "envoy.filters.http.ext_authz",
  httpType: "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
  network: "envoy.filters.network.ext_authz",
  networkType: "envoy.extensions.filters.network.ext_authz.v3.ExtAuthz",
  tcpProxy: "envoy.filters.network.tcp_proxy",
  manager: "envoy.filters.network.http_connection_manager",
  router: "envoy.filters.http.router",
};

const NAMES: Readonly<Record<FilterForm, Names>> = {
  v2: {
    http: "envoy.ext_authz",
    network: "envoy.ext_authz",
    tcpProxy: "envoy.tcp_proxy",
    manager: "envoy.http_connection_manager",
    router: "envoy.router",
  },
  "v3-first": NEW_NAMES,
  v3: NEW_NAMES,
};
