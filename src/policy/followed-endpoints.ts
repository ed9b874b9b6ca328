/**
 * Endpoints as an agent follows them. Those of other nodes are most of its memory in a large cluster: of them only what rules
 * can depend on is kept, and for people what keeps a pod running. What many pods have in common is kept once. What only
 * annotations of a pod say does not count (model/claimed-endpoint.ts).
 */
import { type KindSource, sourceOf } from "../datastore/replica/kinds.ts";
import { withoutClaims } from "../model/claimed-endpoint.ts";
import { CONTAINER_ORCHESTRATOR, containerOf } from "../model/container-labels.ts";
import { NETWORK_ANNOTATION, WITHOUT_IPAM_ANNOTATION } from "../model/endpoint-labels.ts";
import { ENDPOINT } from "../model/kinds.ts";
import { OWNER_ANNOTATION, ownerOfEndpoint, ownerText } from "../model/pod-owner.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";

/** `node`: the node of the agent, whose endpoints are kept whole. */
export function followedEndpoints(node: string): KindSource<WorkloadEndpoint> {
  const { prefix, decode } = sourceOf(ENDPOINT);
  const shared = new SharedValues();
  return {
    prefix,
    decode(entry) {
      const decoded = decode(entry);
      const endpoint = decoded && withoutClaims(decoded);
      return endpoint === undefined || endpoint.spec.node === node ? endpoint : remoteEndpoint(endpoint, shared);
    },
  };
}

function remoteEndpoint(endpoint: WorkloadEndpoint, shared: SharedValues): WorkloadEndpoint {
  const { apiVersion, kind, metadata, spec, status } = endpoint;
  const { name, namespace, labels } = metadata;
  const { node, ipNetworks, profiles, ports } = spec;
  const ofContainer = containerOf(endpoint);
  return {
    ...{ apiVersion, kind },
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace: shared.value(namespace) }),
      ...(labels === undefined ? {} : { labels: shared.value(labels) }),
      ...followedAnnotations(endpoint, ofContainer?.network, shared),
    },
    spec: {
      ...(node === undefined ? {} : { node: shared.value(node) }),
      ...(ofContainer === undefined ? {} : { orchestrator: CONTAINER_ORCHESTRATOR }),
      ...(ofContainer?.container === undefined ? {} : { workload: ofContainer.container }),
      ...(ipNetworks === undefined ? {} : { ipNetworks }),
      ...(profiles === undefined ? {} : { profiles: shared.value(profiles) }),
      ...(ports === undefined ? {} : { ports: shared.value(ports) }),
    },
    ...(status === undefined ? {} : { status }),
  };
}

/**
 * Few endpoints have an address without IPAM: routes to such addresses follow from no block. Pods of other plugins are not
 * routed here. `labelledNetwork`: ContainerLabels may be about it.
 */
function followedAnnotations(endpoint: WorkloadEndpoint, labelledNetwork: string | undefined, shared: SharedValues) {
  const { [NETWORK_ANNOTATION]: network, [WITHOUT_IPAM_ANNOTATION]: addresses } = endpoint.metadata.annotations ?? {};
  const owner = ownerOfEndpoint(endpoint);
  const common = {
    ...(labelledNetwork === undefined ? {} : { [NETWORK_ANNOTATION]: labelledNetwork }),
    ...(owner === undefined ? {} : { [OWNER_ANNOTATION]: ownerText(owner) }),
  };
  if (network !== undefined && addresses !== undefined) {
    return { annotations: { ...common, [WITHOUT_IPAM_ANNOTATION]: addresses } };
  }
  return Object.keys(common).length === 0 ? {} : { annotations: shared.value(common) };
}

/** Labels that differ from pod to pod must not be remembered for ever. */
const MOST_REMEMBERED = 20_000;

/** One object for all values with the same content. */
class SharedValues {
  private readonly known = new Map<string, unknown>();

  value<Value>(value: Value): Value {
    const text = JSON.stringify(value);
    const known = this.known.get(text);
    // The same text is the same value, so also the same type.
    if (known !== undefined) return known as Value;
    if (this.known.size >= MOST_REMEMBERED) this.known.clear();
    this.known.set(text, value);
    return value;
  }
}
