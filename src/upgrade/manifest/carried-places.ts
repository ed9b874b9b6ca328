/** What of a former workload has the same meaning in that of this release, and is kept if the user has changed it. Pure. */
import type { Fields } from "../../kube/objects.ts";
import { isSame } from "../merge/canonical-json.ts";
import { type MergeConflict, UNKNOWN_BASE } from "../merge/three-way.ts";
import { fieldsIn, itemsIn, named, podSpecOf, withPodSpec } from "./workload.ts";

/** Fields of the spec of pods. */
export const CARRIED_POD_FIELDS = [
  "tolerations",
  "nodeSelector",
  "affinity",
  "priorityClassName",
  "imagePullSecrets",
  "hostAliases",
  "dnsPolicy",
  "dnsConfig",
  "schedulerName",
  "runtimeClassName",
  "terminationGracePeriodSeconds",
  "topologySpreadConstraints",
];
/** Of the container of ours: they meant something to the program of that release. */
const OF_PROGRAM = [
  "command",
  "args",
  "livenessProbe",
  "readinessProbe",
  "startupProbe",
  "lifecycle",
  "securityContext",
  "envFrom",
];
/** The same, of its pods. */
const OF_PROGRAM_PODS = ["securityContext"];

export interface Workloads {
  readonly base: Fields | typeof UNKNOWN_BASE;
  /** Whether the base is what was applied last: it has what the user had changed in the file. */
  readonly isBaseApplied?: boolean;
  readonly live: Fields;
  readonly release: Fields;
  /** Of conflicts. */
  readonly winner: "mine" | "theirs";
}

export interface Carried {
  readonly workload: Fields;
  /** `spec.template.spec.tolerations` … that were kept. */
  readonly kept: readonly string[];
  readonly conflicts: readonly MergeConflict[];
}

/** `formerContainer`, `container`: the names of our container in the live workload and in that of the release. */
export function carryPlaces(
  { base, isBaseApplied = false, live, release, winner }: Workloads,
  { formerContainer, container }: { readonly formerContainer: string; readonly container: string },
): Carried {
  const kept: string[] = [];
  const conflicts: MergeConflict[] = [];
  const choose = (path: string, of: (workload: unknown) => unknown, ofRelease = of(release)): unknown => {
    const [mine, before] = [of(live), base === UNKNOWN_BASE ? UNKNOWN_BASE : of(base)];
    const isInstalled = before !== UNKNOWN_BASE && isSame(mine, before);
    if (isSame(mine, ofRelease) || (isInstalled && !isBaseApplied)) return ofRelease;
    if (before !== UNKNOWN_BASE && !isInstalled) {
      kept.push(path);
      return mine;
    }
    conflicts.push(conflict(path, { live: mine, release: ofRelease }));
    return winner === "mine" ? mine : ofRelease;
  };
  const pods = Object.fromEntries(
    CARRIED_POD_FIELDS.map((name) => [name, choose(`spec.template.spec.${name}`, (each) => podSpecOf(each)[name])]),
  );
  const ours = (workload: unknown) => named(itemsIn(podSpecOf(workload), "containers"), formerContainer);
  const releaseContainers = itemsIn(podSpecOf(release), "containers");
  const place = `spec.template.spec.containers[${formerContainer}]`;
  const resources = choose(
    `${place}.resources`,
    (each) => ours(each)?.["resources"],
    named(releaseContainers, container)?.["resources"],
  );
  // Without a base, what was meant for the program of that release is not carried over.
  const decide = (path: string, of: (workload: unknown) => unknown, theirs: unknown): unknown => {
    const [mine, before] = [of(live), base === UNKNOWN_BASE ? undefined : of(base)];
    if (base === UNKNOWN_BASE || isSame(mine, before)) return theirs;
    conflicts.push(conflict(path, { base: before, live: mine, release: theirs }));
    return winner === "mine" ? mine : theirs;
  };
  const program = OF_PROGRAM.map((name) => {
    const theirs = named(releaseContainers, container)?.[name];
    return [name, decide(`${place}.${name}`, (each) => ours(each)?.[name], theirs)] as const;
  });
  const programPods = OF_PROGRAM_PODS.map((name) => {
    const of = (workload: unknown) => podSpecOf(workload)[name];
    return [name, decide(`spec.template.spec.${name}`, of, of(release))] as const;
  });
  const changes = { resources, ...Object.fromEntries(program) };
  const containers = releaseContainers.map((each) =>
    each["name"] === container ? defined({ ...each, ...changes }) : each,
  );
  const spec = defined({ ...podSpecOf(release), ...pods, ...Object.fromEntries(programPods), containers });
  return { workload: withPodSpec(release, spec), kept, conflicts };
}

/** What the user has added to labels or annotations. */
export function addedMembers({ base, live }: Workloads, ...names: readonly string[]): Fields {
  const before = base === UNKNOWN_BASE ? {} : fieldsIn(base, ...names);
  const members = Object.entries(fieldsIn(live, ...names)).filter(([name, value]) => !isSame(before[name], value));
  return Object.fromEntries(members);
}

function conflict(path: string, values: Omit<MergeConflict, "path">): MergeConflict {
  return { path, ...defined(values) };
}

function defined(members: Fields): Fields {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
