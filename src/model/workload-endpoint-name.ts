/**
 * The name of a workload endpoint: its identifiers joined by "-", with each "-"
 * inside them doubled, so that the name can be parsed again.
 *
 *   node "n-1", orchestrator "k8s", pod "web-0", interface "eth0"   ->   n--1-k8s-web--0-eth0
 */
export interface EndpointIdentifiers {
  readonly node: string;
  /** `k8s`, `cni`, `libnetwork`, or another. */
  readonly orchestrator: string;
  /** The pod for `k8s`, the container ID for `cni`, the workload for others; `libnetwork` has none. */
  readonly workload: string;
  /** The interface, or another identifier that is unique among the endpoints of the workload. */
  readonly endpoint: string;
}

export type EndpointName =
  | { readonly ok: true; readonly name: string }
  | { readonly ok: false; readonly field: keyof EndpointIdentifiers; readonly reason: string };

export function workloadEndpointName(identifiers: EndpointIdentifiers): EndpointName {
  return joinSegments(["node", "orchestrator", "workload", "endpoint"], identifiers);
}

/** The prefix of the names of all endpoints of a workload. */
export function workloadEndpointPrefix(identifiers: Omit<EndpointIdentifiers, "endpoint">): EndpointName {
  const joined = joinSegments(["node", "orchestrator", "workload"], { ...identifiers, endpoint: "" });
  return joined.ok ? { ok: true, name: `${joined.name}-` } : joined;
}

/** The identifiers in a name, or `undefined` if the name does not have this form. */
export function parseWorkloadEndpointName(name: string): EndpointIdentifiers | undefined {
  const [node, orchestrator, workload, endpoint, ...rest] = splitSegments(name);
  if (!node || !orchestrator || !workload || !endpoint || rest.length > 0) return undefined;
  return { node, orchestrator, workload, endpoint };
}

function joinSegments(fields: readonly (keyof EndpointIdentifiers)[], identifiers: EndpointIdentifiers): EndpointName {
  const segments: string[] = [];
  for (const field of fields) {
    const segment = field === "workload" ? workloadSegment(identifiers) : identifiers[field];
    if (segment === "") return { ok: false, field, reason: "it is missing" };
    // Next to the separator, such a dash would be read as part of it.
    if (segment.startsWith("-") || segment.endsWith("-")) {
      return { ok: false, field, reason: `"${segment}" must not begin or end with "-"` };
    }
    segments.push(segment.replaceAll("-", "--"));
  }
  return { ok: true, name: segments.join("-") };
}

function workloadSegment({ orchestrator, workload }: EndpointIdentifiers): string {
  return orchestrator === "libnetwork" ? "libnetwork" : workload;
}

function splitSegments(name: string): readonly string[] {
  const segments: string[] = [];
  let segment = "";
  for (let index = 0; index < name.length; index += 1) {
    const character = name.charAt(index);
    if (character !== "-" || index === 0) {
      segment += character;
    } else if (name[index + 1] === "-") {
      segment += "-";
      index += 1;
    } else {
      segments.push(segment);
      segment = "";
    }
  }
  return [...segments, segment];
}
