/** What of a former workload has the same meaning in that of this release, and is kept if the user has changed it. Pure. */
import type { Fields } from "../../kube/objects.ts";
import { isSame } from "../merge/canonical-json.ts";
import { type MergeConflict, UNKNOWN_BASE } from "../merge/three-way.ts";
import { fieldsIn, itemsIn, named } from "../object-fields.ts";
import { podSpecOf, withPodSpec } from "../pod-template.ts";
import { isPublishedValue, OWN_CONTAINER, type PublishedWorkload } from "../published/published-values.ts";

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
  /** Whether the base is what the installation's own release published. Otherwise a value of any release is not the user's. */
  readonly isBaseOwn?: boolean;
  /** The minor release of v3 whose published manifest the base is, if it is the installation's own. */
  readonly ownMinor?: number | undefined;
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
  /** Places that differ from the base, but have what a release published: they get what this release has. */
  readonly replaced: readonly string[];
}

interface CarriedWorkload {
  readonly kind: PublishedWorkload;
  /** The names of our container in the live workload and in that of the release. */
  readonly formerContainer: string;
  readonly container: string;
}

export function carryPlaces(
  { base, isBaseApplied = false, isBaseOwn = false, ownMinor, live, release, winner }: Workloads,
  { kind, formerContainer, container }: CarriedWorkload,
): Carried {
  const kept: string[] = [];
  const conflicts: MergeConflict[] = [];
  const replaced: string[] = [];
  const choose = (place: CarriedPlace): unknown => {
    const { path, of, theirs } = place;
    const [mine, before] = [of(live), base === UNKNOWN_BASE ? UNKNOWN_BASE : of(base)];
    const isInstalled = before !== UNKNOWN_BASE && isSame(mine, before);
    if (isSame(mine, theirs) || (isInstalled && !isBaseApplied)) return theirs;
    if (!isBaseOwn && isPublishedValue({ workload: kind, path: place.name }, mine)) {
      if (before !== UNKNOWN_BASE && !isInstalled) replaced.push(path);
      return theirs;
    }
    if (before !== UNKNOWN_BASE && !isInstalled) {
      kept.push(path);
      return mine;
    }
    conflicts.push(conflict(path, { live: mine, release: theirs }));
    return winner === "mine" ? mine : theirs;
  };
  // Without a base, what was meant for the program of that release is not carried over.
  const decide = ({ path, name, of, theirs }: CarriedPlace): unknown => {
    const [mine, before] = [of(live), base === UNKNOWN_BASE ? undefined : of(base)];
    if (base === UNKNOWN_BASE || isSame(mine, before) || isSame(mine, theirs)) return theirs;
    // Patches and variants of the own release differ, too.
    if (isPublishedValue({ workload: kind, path: name, minor: ownMinor }, mine)) {
      if (!isBaseOwn) replaced.push(path);
      return theirs;
    }
    conflicts.push(conflict(path, { base: before, live: mine, release: theirs }));
    return winner === "mine" ? mine : theirs;
  };
  const ofPods = (name: string): CarriedPlace => {
    const of = (workload: unknown) => podSpecOf(workload)[name];
    return { path: `spec.template.spec.${name}`, name, of, theirs: of(release) };
  };
  const releaseContainers = itemsIn(podSpecOf(release), "containers");
  const ofContainer = (name: string): CarriedPlace => ({
    path: `spec.template.spec.containers[${formerContainer}].${name}`,
    name: `${OWN_CONTAINER}${name}`,
    of: (workload) => named(itemsIn(podSpecOf(workload), "containers"), formerContainer)?.[name],
    theirs: named(releaseContainers, container)?.[name],
  });
  const pods = Object.fromEntries(CARRIED_POD_FIELDS.map((name) => [name, choose(ofPods(name))]));
  const resources = choose(ofContainer("resources"));
  const program = OF_PROGRAM.map((name) => [name, decide(ofContainer(name))] as const);
  const programPods = OF_PROGRAM_PODS.map((name) => [name, decide(ofPods(name))] as const);
  const changes = { resources, ...Object.fromEntries(program) };
  const containers = releaseContainers.map((each) =>
    each["name"] === container ? defined({ ...each, ...changes }) : each,
  );
  const spec = defined({ ...podSpecOf(release), ...pods, ...Object.fromEntries(programPods), containers });
  return { workload: withPodSpec(release, spec), kept, conflicts, replaced };
}

interface CarriedPlace {
  /** As it is shown. */
  readonly path: string;
  /** As the table of published values has it. */
  readonly name: string;
  readonly of: (workload: unknown) => unknown;
  /** What the release has there. */
  readonly theirs: unknown;
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
