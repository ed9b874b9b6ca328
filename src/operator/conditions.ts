/** Conditions of a component, and when they changed. Pure. */
export type ConditionStatus = "True" | "False";

/** What a condition says; the reasons are those that operators know from other networks. */
export interface Finding {
  readonly status: ConditionStatus;
  readonly reason: Reason;
  readonly message: string;
}

export type Reason =
  | "AllObjectsAvailable"
  | "ResourceNotReady"
  | "PodFailure"
  | "NodeNotReady"
  | "InvalidConfigurationError"
  | "ResourceReadError"
  | "ResourceUpdateError"
  | "Deleting"
  | "NotApplicable"
  | "Unknown";

/** How a component is: all three are always known. */
export interface ComponentState {
  readonly available: Finding;
  readonly progressing: Finding;
  readonly degraded: Finding;
}

export interface Condition extends Finding {
  readonly type: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}

export interface Moment {
  /** Of the Installation that the conditions are about. */
  readonly generation: number;
  readonly now: Date;
}

const NOTHING: Finding = { status: "False", reason: "NotApplicable", message: "" };

export const AVAILABLE: ComponentState = {
  available: { status: "True", reason: "AllObjectsAvailable", message: "All objects are available" },
  progressing: { ...NOTHING, reason: "AllObjectsAvailable" },
  degraded: { ...NOTHING, reason: "AllObjectsAvailable" },
};

export function progressing(reason: Reason, message: string): ComponentState {
  return {
    available: { status: "False", reason, message },
    progressing: { status: "True", reason, message },
    degraded: NOTHING,
  };
}

/** `also`: what it is waiting for besides. */
export function degraded(reason: Reason, message: string, also?: ComponentState): ComponentState {
  return {
    available: { status: "False", reason, message },
    progressing: also?.progressing ?? NOTHING,
    degraded: { status: "True", reason, message },
  };
}

/** `firstType`: "Available" of a component, "Ready" of an Installation. */
export function conditionsOf(
  state: ComponentState,
  previous: readonly Condition[],
  { generation, now }: Moment,
  firstType: "Available" | "Ready" = "Available",
): readonly Condition[] {
  const rows = [
    [firstType, state.available],
    ["Progressing", state.progressing],
    ["Degraded", state.degraded],
  ] as const;
  return rows.map(([type, finding]) => {
    const before = previous.find((condition) => condition.type === type);
    const isSame = before?.status === finding.status;
    const lastTransitionTime = isSame ? before.lastTransitionTime : now.toISOString().replace(/\.\d+Z$/, "Z");
    return { type, ...finding, observedGeneration: generation, lastTransitionTime };
  });
}

/** The state of the whole: what is wrong with any component is wrong with it, and its message names the component. */
export function summaryOf(components: Readonly<Record<string, ComponentState>>): ComponentState {
  const rows = Object.entries(components);
  const all = (pick: (state: ComponentState) => Finding, status: ConditionStatus): Finding | undefined => {
    const found = rows.filter(([, state]) => pick(state).status === status);
    const [first] = found;
    if (first === undefined) return undefined;
    return { ...pick(first[1]), message: found.map(([name, state]) => `${name}: ${pick(state).message}`).join("; ") };
  };
  return {
    available: all(({ available }) => available, "False") ?? AVAILABLE.available,
    progressing: all((state) => state.progressing, "True") ?? AVAILABLE.progressing,
    degraded: all((state) => state.degraded, "True") ?? AVAILABLE.degraded,
  };
}
