/** Messages of a batch about sets and maps. */
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import { typesOfNumber } from "../../../src/linux/nftables/data-type.ts";
import type { SetShape } from "../../../src/linux/nftables/set.ts";
import { SET_COMMENT } from "../../../src/linux/nftables/userdata.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";
import { commentOf, findTable } from "./apply-table.ts";
import { Refused, required } from "./refused.ts";
import type { Request } from "./request.ts";
import type { ModelSet, ModelTable } from "./state.ts";
import type { Transaction } from "./transaction.ts";

export function addSet(transaction: Transaction, request: Request, port: number): void {
  const table = findTable(transaction.state, request, port);
  const name = required(request.text(wire.SET.name), "EINVAL");
  const flags = request.number(wire.SET.flags) ?? 0;
  const shape = readShape(request, flags);
  const existing = table.sets.get(name);
  if (existing !== undefined) {
    if (request.hasFlag(FLAG.exclusive)) throw new Refused("EEXIST");
    if (!hasSameShape(existing.set, shape)) throw new Refused("EEXIST");
    transaction.tell({ kind: "set", table, set: existing, isNew: true });
    return;
  }
  if (!request.hasFlag(FLAG.create)) throw new Refused("ENOENT");
  const set: ModelSet = {
    set: { name: freeName(table, name), ...shape, ...commentOf(request.bytes(wire.SET.userdata), SET_COMMENT) },
    handle: ++table.lastHandle,
    isAnonymous: (flags & wire.SET_FLAG.anonymous) !== 0,
    elements: new Map(),
    ordered: [],
    lookups: 0,
  };
  transaction.addSet(table, set, request.number(wire.SET.id));
}

export function deleteSet(transaction: Transaction, request: Request, port: number): void {
  const table = findTable(transaction.state, request, port);
  const set = required(table.sets.get(required(request.text(wire.SET.name), "EINVAL")), "ENOENT");
  if (set.lookups > 0) throw new Refused("EBUSY");
  transaction.removeSet(table, set);
}

/** By name, or by its number in the batch. */
export function findSet(
  transaction: Transaction,
  table: ModelTable,
  name: string | undefined,
  number: number | undefined,
): ModelSet {
  const named = name === undefined ? undefined : table.sets.get(name);
  if (named !== undefined) return named;
  const numbered = number === undefined ? undefined : transaction.setsByNumber.get(number);
  const isThere = numbered?.table === table && table.sets.get(numbered.set.set.name) === numbered.set;
  return required(isThere ? numbered.set : undefined, "ENOENT");
}

function readShape(request: Request, flags: number): SetShape {
  const key = typesOfNumber(required(request.number(wire.SET.keyType), "EINVAL"));
  // A set of types that the product does not know.
  if (key === undefined) throw new Refused("EOPNOTSUPP");
  const isMap = (flags & wire.SET_FLAG.map) !== 0;
  const dataType = request.number(wire.SET.dataType);
  if (isMap !== (dataType !== undefined)) throw new Refused("EINVAL");
  const data = dataType === undefined ? undefined : dataTypes(dataType);
  return {
    key,
    ...(data === undefined ? {} : { data }),
    ...((flags & wire.SET_FLAG.interval) === 0 ? {} : { holdsIntervals: true }),
  };
}

function dataTypes(number: number): Exclude<SetShape["data"], undefined> {
  if (number === wire.VERDICT_TYPE) return "verdict";
  return required(typesOfNumber(number), "EOPNOTSUPP");
}

function hasSameShape(set: SetShape, other: SetShape): boolean {
  return Bun.deepEquals(
    [set.key, set.data, set.holdsIntervals ?? false],
    [other.key, other.data, other.holdsIntervals ?? false],
  );
}

/** The name of an anonymous set contains a place for the least free number. */
function freeName(table: ModelTable, name: string): string {
  if (!name.includes("%d")) return name;
  for (let number = 0; ; number++) {
    const free = name.replace("%d", String(number));
    if (!table.sets.has(free)) return free;
  }
}
