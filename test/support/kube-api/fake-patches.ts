/** The patches that an API server in memory understands. */
export interface FakeObject {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

interface Operation {
  readonly op: "add" | "replace" | "remove" | "test";
  readonly path: string;
  readonly value?: unknown;
}

/** `undefined` if a test fails or a parent is missing. */
export function applyPatch(object: FakeObject, operations: readonly Operation[]): FakeObject | undefined {
  const copy = structuredClone(object) as Record<string, unknown> & FakeObject;
  for (const { op, path, value } of operations) {
    const steps = path
      .split("/")
      .slice(1)
      .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = steps.pop() ?? "";
    let parent: unknown = copy;
    for (const step of steps) parent = (parent as Record<string, unknown> | undefined)?.[step];
    if (parent === undefined) return undefined;
    const members = parent as Record<string, unknown>;
    if (op === "test" && !Bun.deepEquals(members[last] ?? null, value ?? null)) return undefined;
    if (op === "remove") delete members[last];
    if (op === "add" || op === "replace") members[last] = value;
  }
  return copy;
}

export function mergePatch(object: FakeObject, patch: Readonly<Record<string, unknown>>): FakeObject {
  const merged: Record<string, unknown> = { ...object };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else if (typeof value === "object" && !Array.isArray(value))
      merged[name] = mergePatch((merged[name] ?? {}) as FakeObject, value as FakeObject);
    else merged[name] = value;
  }
  return merged as FakeObject;
}
