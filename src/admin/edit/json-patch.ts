/**
 * JSON patch (RFC 6902): a list of operations, each at a JSON pointer (RFC 6901). All of them, or an error.
 *
 * The package json-p3 changes a copy. Checked before is what it would do differently, or refuse without naming the place.
 */
import { apply, JSONPointer, type JSONValue } from "json-p3";
import * as v from "valibot";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { PatchError } from "./patch-error.ts";

const POINTER = v.pipe(
  v.string('is missing; give it a JSON pointer such as "/spec/cidr"'),
  v.regex(/^(\/|$)/, ({ input }) => `${quoted(input)} does not begin with "/"`),
  v.transform((text) => new JSONPointer(text)),
);
const VALUE = v.custom<JSONValue>((value) => value !== undefined, "is missing; give it a value");
const OPERATION = v.variant(
  "op",
  [
    v.object({ op: v.picklist(["add", "replace", "test"]), path: POINTER, value: VALUE }),
    v.object({ op: v.literal("remove"), path: POINTER }),
    v.object({ op: v.picklist(["move", "copy"]), path: POINTER, from: POINTER }),
  ],
  ({ input }) => `${quoted(input)} is not an operation; use add, remove, replace, move, copy or test`,
);
type Operation = v.InferOutput<typeof OPERATION>;

export function jsonPatch(target: unknown, operations: readonly unknown[]): unknown {
  let patched = copied(target);
  for (const [index, operation] of operations.entries()) {
    try {
      patched = applyOperation(patched, decodeOperation(copied(operation)));
    } catch (failure) {
      throw failure instanceof PatchError ? new PatchError(`operation ${index + 1}: ${failure.message}`) : failure;
    }
  }
  return structuredClone(patched);
}

/** Shares nothing, not even within itself. Objects have no prototype: else the package would set it as "__proto__". */
function copied(value: unknown): JSONValue {
  if (Array.isArray(value)) return value.map(copied);
  if (!isObject(value)) return value as JSONValue;
  const members = Object.entries(value).map(([name, member]) => [name, copied(member)]);
  return Object.assign(Object.create(null), Object.fromEntries(members));
}

function decodeOperation(operation: unknown): Operation {
  if (!isObject(operation)) throw new PatchError("it is not an object");
  const decoded = v.safeParse(OPERATION, { path: undefined, from: undefined, value: undefined, ...operation });
  if (decoded.success) return decoded.output;
  throw new PatchError(`${v.getDotPath(decoded.issues[0])}: ${decoded.issues[0].message}`);
}

/** To copy is to add a copy of what was found (the package would share it), to move is to remove it before. */
function applyOperation(target: JSONValue, operation: Operation): JSONValue {
  const { op, path } = operation;
  if ("from" in operation) {
    const { from } = operation;
    const value = copied(valueAt(target, from));
    if (op === "copy") return applyOperation(target, { op: "add", path, value });
    if (path.isRelativeTo(from)) throw new PatchError(`${quoted(String(from))} cannot be moved into itself`);
    return applyOperation(applyOperation(target, { op: "remove", path: from }), { op: "add", path, value });
  }
  const place = String(path);
  if (op === "remove" && place === "") throw new PatchError("the whole resource cannot be removed; use delete");
  const found = valueAt(target, path, op);
  if (operation.op !== "test") return apply([{ ...operation, path: place }], target);
  if (Bun.deepEquals(found, operation.value)) return target;
  throw new PatchError(`${quoted(place)} is ${quoted(found)}, not ${quoted(operation.value)}`);
}

/** `undefined` only if `add` may put a value there. */
function valueAt(target: JSONValue, { tokens }: JSONPointer, op?: Operation["op"]): JSONValue {
  return tokens.reduce<JSONValue>((value, step, index) => {
    const isList = Array.isArray(value);
    const found = isList || isObject(value) ? new Map(Object.entries(value)).get(step) : undefined;
    const isPlace = isList ? [`${value.length}`, "-"].includes(step) : isObject(value);
    if (found !== undefined || (op === "add" && isPlace && index === tokens.length - 1)) return found;
    throw new PatchError(`${quoted(JSONPointer.encode(tokens.slice(0, index + 1)))} does not exist`);
  }, target);
}
