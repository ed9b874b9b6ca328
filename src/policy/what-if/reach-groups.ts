/** The ends of classes as people know them: workloads by namespace and owner, hosts, and networks outside. Pure. */
import { identity } from "../../identity.ts";
import { formatPrefix, parsePrefixOrAddress } from "../../ip/prefix.ts";
import { ownerOfEndpoint } from "../../model/pod-owner.ts";
import { parseWorkloadEndpointName } from "../../model/workload-endpoint-name.ts";
import type { AnyEndpoint, PolicyResources } from "../judge/resources.ts";
import type { End } from "./ends.ts";
import type { EndClass } from "./reach.ts";

export type Grouping = "group" | "namespace";

export interface Group {
  readonly kind: End["kind"];
  /** `shop/web`; of several parts that rules tell apart, with the labels that differ. */
  readonly name: string;
  /** `shop/web`, also of a part. */
  readonly whole: string;
  readonly namespace?: string;
}

/** By class. The same group is the same object. */
export function groupsOf(
  classes: readonly EndClass[],
  by: Grouping,
  resources: PolicyResources,
): ReadonlyMap<EndClass, readonly Group[]> {
  const setNames = namesOfNetworks(resources);
  const parts = classes.flatMap((each) =>
    Array.from(
      Map.groupBy(each.ends, (end) => JSON.stringify(baseOf(end, by, setNames))),
      ([text, ends]) => ({ class: each, base: JSON.parse(text) as Base, ends }),
    ),
  );
  const groups = new Map<string, Group>();
  const named = parts.map((part) => {
    const others = parts.filter(
      ({ base, class: { family } }) => base.name === part.base.name && family === part.class.family,
    );
    const name =
      others.length === 1 || by === "namespace" ? part.base.name : `${part.base.name} (${difference(part, others)})`;
    const key = `${part.base.kind} ${name}`;
    const group = groups.get(key) ?? { ...part.base, name, whole: part.base.name };
    groups.set(key, group);
    return { class: part.class, group };
  });
  return new Map(
    Array.from(
      Map.groupBy(named, (part) => part.class),
      ([each, own]) => [each, [...new Set(own.map(({ group }) => group))]],
    ),
  );
}

type Base = Pick<Group, "kind" | "name" | "namespace">;

interface Part {
  readonly class: EndClass;
  readonly base: Base;
  readonly ends: readonly End[];
}

function baseOf(end: End, by: Grouping, setNames: ReadonlyMap<string, string>): Base {
  const endpoint = end.after ?? end.before;
  if (end.kind === "host" && endpoint === undefined)
    return { kind: "host", name: by === "namespace" ? "hosts" : "nodes" };
  if (end.kind === "outside" || endpoint === undefined) {
    const text = end.network === undefined ? undefined : formatPrefix(end.network);
    return {
      kind: "outside",
      name: text === undefined || by === "namespace" ? "outside" : (setNames.get(text) ?? text),
    };
  }
  if (end.kind === "host")
    return { kind: "host", name: by === "namespace" ? "hosts" : `host endpoint ${endpoint.metadata.name}` };
  const { namespace = "" } = endpoint.metadata;
  const name = by === "namespace" ? namespace : `${namespace}/${nameOf(endpoint)}`;
  return { kind: "workload", name, namespace };
}

function nameOf(endpoint: AnyEndpoint): string {
  const { metadata, spec } = endpoint;
  if (endpoint.kind === "HostEndpoint") return metadata.name;
  const named = parseWorkloadEndpointName(metadata.name);
  const owner = ownerOfEndpoint(endpoint)?.name;
  const container = "workload" in spec ? spec.workload : undefined;
  return (
    owner ??
    container ??
    (named?.orchestrator === "k8s" ? named.workload : (named?.workload.slice(0, 12) ?? metadata.name))
  );
}

/** A network is called by the sets that contain it. */
function namesOfNetworks({ networkSets, globalNetworkSets }: PolicyResources): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const { metadata, spec } of [...networkSets, ...globalNetworkSets]) {
    const { namespace, name } = metadata;
    for (const net of spec.nets ?? []) {
      const prefix = parsePrefixOrAddress(net);
      if (prefix === undefined) continue;
      names.set(formatPrefix(prefix), `set ${namespace === undefined ? name : `${namespace}/${name}`}`);
    }
  }
  return names;
}

/** What rules can tell the parts of one name apart by: labels that are the same in a part, and not in all. */
function difference({ class: { family, kind }, ends }: Part, others: readonly Part[]): string {
  if (kind === "outside")
    return `${ends
      .map(({ text }) => text)
      .slice(0, MOST_LABELS)
      .join(", ")}…`;
  const all = others.flatMap((other) => other.ends);
  const names = new Set(all.flatMap((end) => Object.keys(labelsOf(end))));
  const telling = [...names].filter((name) => {
    const isSame = (some: readonly End[]) => new Set(some.map((end) => labelsOf(end)[name])).size === 1;
    return !name.startsWith(identity.labelPrefix) && isSame(ends) && !isSame(all);
  });
  const [first] = ends;
  if (telling.length === 0 || first === undefined) {
    const index = others.findIndex((other) => other.ends === ends) + 1;
    return `part ${index} of ${others.length}${family === 6 ? ", IPv6" : ""}`;
  }
  const labels = labelsOf(first);
  return telling
    .slice(0, MOST_LABELS)
    .map((name) => (labels[name] === undefined ? `no ${name}` : `${name}=${labels[name]}`))
    .join(", ");
}

const MOST_LABELS = 2;

function labelsOf({ after, before }: End): Readonly<Record<string, string>> {
  return (after ?? before)?.metadata.labels ?? {};
}
