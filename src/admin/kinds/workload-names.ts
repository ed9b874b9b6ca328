/** Which workloads a word on the command line names: one rule for all commands. Pure. */
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { OtherNames } from "./kind.ts";

/** Of its pod or container; workload endpoints have long names that nobody types. */
export function workloadNames({ spec: { pod, workload, containerID, node } }: WorkloadEndpoint): OtherNames {
  return {
    ...(node === undefined ? {} : { node }),
    names: [pod, workload].filter((name) => name !== undefined),
    ids: containerID === undefined ? [] : [containerID],
  };
}

/** Whole names first: the beginning of an ID may be the name of another container. */
export function namedBy<T>(word: string, all: readonly T[], namesOf: (each: T) => OtherNames): readonly T[] {
  const byName = all.filter((each) => namesOf(each).names.includes(word));
  if (byName.length > 0) return byName;
  return all.filter((each) =>
    namesOf(each).ids.some((id) => id === word || (word.length >= SHORTEST_ID && id.startsWith(word))),
  );
}

/** Characters of an ID that are enough to name a container; podman prints 12 of them. */
const SHORTEST_ID = 4;
