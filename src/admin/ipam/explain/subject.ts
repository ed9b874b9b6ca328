/** The workload that `ipam explain` is about: a pod, or a container that is not in a pod. */
import type { Datastore } from "../../../datastore/datastore.ts";
import { readAllEntries } from "../../../datastore/pages.ts";
import { type ReadEach, readEach } from "../../../datastore/read-each.ts";
import { resourcesPrefix } from "../../../model/keys.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../../model/workload-endpoint.ts";
import { quoted } from "../../../quote.ts";
import { namedBy, workloadNames } from "../../kinds/workload-names.ts";
import { UsageError } from "../../main/command.ts";

export type Subject =
  | { readonly kind: "pod"; readonly namespace: string; readonly name: string }
  /** `namespace`: if the user gave one. */
  | { readonly kind: "container"; readonly word: string; readonly namespace?: string };

/**
 * `default/web`, or the ID of a container, its beginning, or its name; `resolveSubject` also finds a pod by its name, and a
 * container by its namespace and name.
 */
export function subjectOf(operands: readonly string[]): Subject {
  const [operand, ...more] = operands;
  if (operand === undefined || operand === "" || more.length > 0) {
    throw new UsageError('"ipam explain" takes exactly one NAMESPACE/POD or container');
  }
  const parts = operand.split("/");
  const [namespace = "", name = "", ...rest] = parts;
  if (parts.length === 1) return { kind: "container", word: operand };
  if (namespace !== "" && name !== "" && rest.length === 0) return { kind: "pod", namespace, name };
  throw new UsageError(`${quoted(operand)} is not a pod; use NAMESPACE/POD, for example default/web`);
}

export function describeSubject(subject: Subject): string {
  return subject.kind === "pod" ? `pod "${subject.namespace}/${subject.name}"` : `container ${quoted(subject.word)}`;
}

/** A pod's name without its namespace is enough if no other pod and no container has the name. */
export async function resolveSubject(store: Datastore, subject: Subject): Promise<Subject> {
  if (subject.kind === "pod") return containerOfNamespace(store, subject);
  const { readable } = await readEndpoints(store);
  const named = namedBy(subject.word, readable, workloadNames);
  const pods = named.filter(({ spec }) => spec.pod === subject.word);
  if (pods.length === 0) return subject;
  const containers = named.filter(({ spec }) => spec.pod !== subject.word);
  const [namespace = "", ...others] = new Set(pods.map(({ metadata }) => metadata.namespace ?? ""));
  if (others.length + containers.length === 0) return { kind: "pod", namespace, name: subject.word };
  const titles = [
    ...[namespace, ...others].map((each) => `${each}/${subject.word}`),
    ...new Set(containers.map(({ spec }) => `the container ID ${spec.containerID ?? ""}`)),
  ];
  throw new UsageError(`${quoted(subject.word)} names several workloads; give one of ${titles.join(", ")}`);
}

/** If the namespace has no such pod, but a container. */
async function containerOfNamespace(store: Datastore, pod: Extract<Subject, { kind: "pod" }>): Promise<Subject> {
  const { namespace, name: word } = pod;
  const { readable } = await readEndpoints(store, namespace);
  const named = namedBy(word, readable, workloadNames);
  const isContainer = named.length > 0 && named.every(({ spec }) => spec.pod === undefined);
  return isContainer ? { kind: "container", word, namespace } : pod;
}

export async function findEndpoints(store: Datastore, subject: Subject): Promise<ReadEach<WorkloadEndpoint>> {
  const { readable, unreadable } = await readEndpoints(store, subject.namespace);
  const found =
    subject.kind === "pod"
      ? readable.filter(({ spec }) => spec.pod === subject.name)
      : namedBy(subject.word, readable, workloadNames);
  const containers = new Set(found.map(({ spec }) => spec.containerID));
  if (subject.kind === "pod" || containers.size < 2) return { readable: found, unreadable };
  throw new UsageError(
    `${quoted(subject.word)} is not the name of one container; use one of the IDs ${[...containers].join(", ")}`,
  );
}

async function readEndpoints(store: Datastore, namespace?: string): Promise<ReadEach<WorkloadEndpoint>> {
  const entries = await readAllEntries(store, resourcesPrefix("workloadendpoints", namespace));
  return readEach(entries, ({ value, key }) => workloadEndpoint.read(value, key));
}
