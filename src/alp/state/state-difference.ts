/** What a sidecar must be sent so that it knows the state of its pod, after what it was sent before. Pure. */
import type { SetHistory } from "../../policy/compile/set-history.ts";
import type { SidecarPolicy, SidecarSet, SidecarSetChange, SidecarUpdate } from "../protocol/sidecar-state.ts";
import type { SidecarState } from "./sidecar-states.ts";

/** What one sidecar has been sent. */
export interface SentState {
  readonly revision: number;
  readonly state: SidecarState;
  /** The versions of the sets, by name. */
  readonly versions: ReadonlyMap<string, number>;
}

export interface StateDifference {
  readonly update: SidecarUpdate;
  readonly sent: SentState;
}

/** `undefined` if there is nothing to send. `before` is `undefined` if nothing was sent yet. */
export function differenceOf(before: SentState | undefined, state: SidecarState): StateDifference | undefined {
  const sets = setChanges(before, state);
  const policies = policyChanges(before?.state.policies, state.policies);
  const revision = (before?.revision ?? 0) + 1;
  const changes = {
    ...changed("addresses", before?.state, state),
    ...changed("evaluation", before?.state, state),
    ...(before === undefined || policies.length > 0 ? { policies: Object.fromEntries(policies) } : {}),
    ...(before === undefined || sets.length > 0 ? { sets: Object.fromEntries(sets) } : {}),
  };
  if (Object.keys(changes).length === 0) return undefined;
  const versions = new Map(Array.from(state.sets, ([name, { version }]) => [name, version]));
  return { update: { type: "update", revision, ...changes }, sent: { revision, state, versions } };
}

type Plain = "addresses" | "evaluation";

function changed<Field extends Plain>(
  field: Field,
  before: SidecarState | undefined,
  now: SidecarState,
): Partial<Pick<SidecarUpdate, Plain>> {
  if (before !== undefined && (before[field] === now[field] || Bun.deepEquals(before[field], now[field]))) return {};
  return { [field]: now[field] };
}

function policyChanges(
  before: ReadonlyMap<string, SidecarPolicy> | undefined,
  now: ReadonlyMap<string, SidecarPolicy>,
): readonly (readonly [string, SidecarPolicy | null])[] {
  if (before === now) return [];
  const gone = [...(before?.keys() ?? [])].filter((key) => !now.has(key)).map((key) => [key, null] as const);
  const put = [...now].filter(([key, policy]) => !isSamePolicy(before?.get(key), policy));
  return [...gone, ...put];
}

/** The rules are the same object if the policy has not changed. */
function isSamePolicy(before: SidecarPolicy | undefined, now: SidecarPolicy): boolean {
  if (before === undefined) return false;
  return (before.rules === now.rules && before.title === now.title) || Bun.deepEquals(before, now);
}

function setChanges(
  before: SentState | undefined,
  { sets }: SidecarState,
): readonly (readonly [string, SidecarSet | SidecarSetChange | null])[] {
  const gone = [...(before?.state.sets.keys() ?? [])].filter((name) => !sets.has(name));
  const put = Array.from(sets, ([name, history]) => [name, setChange(before, name, history)] as const);
  return [
    ...gone.map((name) => [name, null] as const),
    ...put.flatMap(([name, change]) => (change === undefined ? [] : [[name, change] as const])),
  ];
}

/** `undefined` if the sidecar has the members of now. */
function setChange(
  before: SentState | undefined,
  name: string,
  history: SetHistory,
): SidecarSet | SidecarSetChange | undefined {
  const version = before?.versions.get(name);
  if (version === history.version && before?.state.sets.get(name) === history) return undefined;
  const isSameSet = version !== undefined && before?.state.sets.get(name) === history;
  const changes = isSameSet ? history.changesSince(version) : undefined;
  if (changes === undefined) return { members: [...history.members()] };
  return changes.add.length + changes.remove.length === 0 ? undefined : changes;
}
