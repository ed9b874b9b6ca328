/** JSON patch (RFC 6902): a list of operations, each at a JSON pointer (RFC 6901). All of them, or an error. */
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";

/** Says which operation cannot be done, and why. */
export class PatchError extends Error {
  override readonly name = "PatchError";
}

export function jsonPatch(target: unknown, operations: readonly unknown[]): unknown {
  return operations.reduce<unknown>((value, operation, index) => {
    try {
      return applyOperation(value, operation);
    } catch (failure) {
      if (!(failure instanceof PatchError)) throw failure;
      throw new PatchError(`operation ${index + 1}: ${failure.message}`);
    }
  }, target);
}

function applyOperation(target: unknown, operation: unknown): unknown {
  if (!isObject(operation)) throw new PatchError("it is not an object");
  const { op } = operation;
  const path = pointerOf(operation, "path");
  switch (op) {
    case "add":
      return added(target, path, valueIn(operation));
    case "remove":
      return removed(target, path);
    case "replace":
      return replaced(target, path, valueIn(operation));
    case "move": {
      const from = pointerOf(operation, "from");
      if (isInside(path, from)) throw new PatchError(`${textOf(from)} cannot be moved into itself`);
      return added(removed(target, from), path, valueAt(target, from));
    }
    case "copy":
      return added(target, path, valueAt(target, pointerOf(operation, "from")));
    case "test": {
      if (Bun.deepEquals(valueAt(target, path), valueIn(operation))) return target;
      throw new PatchError(`${textOf(path)} is ${quoted(valueAt(target, path))}, not ${quoted(operation["value"])}`);
    }
    default:
      throw new PatchError(`op: ${quoted(op)} is not an operation; use add, remove, replace, move, copy or test`);
  }
}

type Pointer = readonly string[];

function pointerOf(operation: Readonly<Record<string, unknown>>, field: "path" | "from"): Pointer {
  const text = operation[field];
  if (typeof text !== "string")
    throw new PatchError(`${field}: is missing; give it a JSON pointer such as "/spec/cidr"`);
  if (text === "") return [];
  if (!text.startsWith("/")) throw new PatchError(`${field}: ${quoted(text)} does not begin with "/"`);
  return text
    .slice(1)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function textOf(path: Pointer): string {
  return quoted(path.map((step) => `/${step}`).join(""));
}

function valueIn(operation: Readonly<Record<string, unknown>>): unknown {
  if (!Object.hasOwn(operation, "value")) throw new PatchError("value: is missing; give it a value");
  return operation["value"];
}

function isInside(path: Pointer, outer: Pointer): boolean {
  return path.length > outer.length && outer.every((step, index) => step === path[index]);
}

function missing(path: Pointer): PatchError {
  return new PatchError(`${textOf(path)} does not exist`);
}

function valueAt(target: unknown, path: Pointer): unknown {
  return path.reduce<unknown>((value, step, index) => {
    const found = memberOf(value, step);
    if (found === undefined) throw missing(path.slice(0, index + 1));
    return found;
  }, target);
}

function memberOf(value: unknown, step: string): unknown {
  if (Array.isArray(value)) return isIndex(step) ? value[Number(step)] : undefined;
  return isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
}

function isIndex(step: string): boolean {
  return /^(0|[1-9]\d*)$/.test(step);
}

function added(target: unknown, path: Pointer, value: unknown): unknown {
  return changedAt(target, path, {
    inArray(list, step) {
      const index = step === "-" ? list.length : isIndex(step) ? Number(step) : Number.NaN;
      if (!(index <= list.length)) throw missing(path);
      return list.toSpliced(index, 0, value);
    },
    inObject: (object, step) => withMember(object, step, value),
    whole: () => value,
  });
}

function replaced(target: unknown, path: Pointer, value: unknown): unknown {
  valueAt(target, path);
  return changedAt(target, path, {
    inArray: (list, step) => list.with(Number(step), value),
    inObject: (object, step) => withMember(object, step, value),
    whole: () => value,
  });
}

function removed(target: unknown, path: Pointer): unknown {
  valueAt(target, path);
  return changedAt(target, path, {
    inArray: (list, step) => list.toSpliced(Number(step), 1),
    inObject: (object, step) => Object.fromEntries(Object.entries(object).filter(([name]) => name !== step)),
    whole: () => {
      throw new PatchError("the whole resource cannot be removed; use delete");
    },
  });
}

interface Changes {
  inArray(list: readonly unknown[], step: string): unknown;
  inObject(object: Readonly<Record<string, unknown>>, step: string): unknown;
  whole(): unknown;
}

/** Copies what is on the way to the path, and changes its last step. */
function changedAt(target: unknown, path: Pointer, changes: Changes, done: Pointer = []): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return changes.whole();
  if (rest.length === 0) {
    if (Array.isArray(target)) return changes.inArray(target, step);
    if (isObject(target)) return changes.inObject(target, step);
    throw missing(done);
  }
  const here = [...done, step];
  const inner = memberOf(target, step);
  if (inner === undefined) throw missing(here);
  const changed = changedAt(inner, rest, changes, here);
  if (Array.isArray(target)) return target.with(Number(step), changed);
  return isObject(target) ? withMember(target, step, changed) : target;
}

function withMember(object: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  return Object.fromEntries(new Map([...Object.entries(object), [name, value]]));
}
