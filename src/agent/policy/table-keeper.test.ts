import { describe, expect, test } from "bun:test";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { errnoOf } from "../../linux/errno.ts";
import { KernelError } from "../../linux/kernel-error.ts";
import type { Noticed } from "../../linux/nftables/monitor.ts";
import { PolicyCompiler } from "../../policy/compile/compiler.ts";
import type { TableDelta } from "../../policy/table/desired-table.ts";
import type { KernelTable } from "./kernel-table.ts";
import { TableKeeper } from "./table-keeper.ts";

const NOTHING = changesBetween(NO_RESOURCES, NO_RESOURCES);

interface Imitation {
  readonly refusing?: () => boolean;
  readonly isWanted?: () => boolean;
  readonly noticed?: Noticed;
  readonly difference?: string;
  readonly isAdopted?: boolean;
  readonly isHooked?: boolean;
  /** The table cannot be read. */
  readonly isBusy?: () => boolean;
}

/** What differed in the table of the former agent. */
const ADOPTED: TableDelta = { chains: new Map(), sets: new Map(), elements: new Map() };

function keeperOf({
  refusing = () => false,
  isWanted = () => true,
  noticed,
  difference,
  isAdopted = false,
  isHooked = false,
  isBusy = () => false,
}: Imitation = {}) {
  const failIfBusy = () => {
    if (isBusy()) throw new KernelError("list rules: it kept changing", errnoOf("EINTR"));
  };
  const calls: string[] = [];
  const reports: string[] = [];
  const kernel: KernelTable = {
    adopt: () => {
      calls.push("adopt");
      failIfBusy();
      return isAdopted ? ADOPTED : undefined;
    },
    replace: () => void calls.push("replace"),
    change: () => {
      calls.push("change");
      return refusing() ? { error: new KernelError("add an element", 2) } : undefined;
    },
    remove: () => void calls.push("remove"),
    counts: () => [],
    notice: () => noticed ?? { kind: "nothing" },
    difference: () => {
      calls.push("compare");
      failIfBusy();
      return difference;
    },
    close: () => {},
  };
  const compiler = new PolicyCompiler({ node: "node-1" });
  const report = (message: string) => void reports.push(message);
  const compiled = () => void calls.push("compiled");
  const adopted: TableDelta[] = [];
  const keeper = new TableKeeper({
    ...{ compiler, kernel, isWanted, report, ...(isHooked ? { compiled } : {}) },
    adopted: (delta) => void adopted.push(delta),
  });
  return { keeper, calls, reports, adopted };
}

describe("TableKeeper", () => {
  test("replaces a table that it cannot take over, then changes it", () => {
    const { keeper, calls } = keeperOf();
    for (let count = 0; count < 3; count++) keeper.update(NOTHING);

    expect(calls).toEqual(["adopt", "replace", "change", "change"]);
  });

  test("adds what the resources depend on before the kernel gets them, also the first time", () => {
    const { keeper, calls } = keeperOf({ isHooked: true });
    keeper.update(NOTHING);
    keeper.updateInterfaces([]);

    expect(calls).toEqual(["compiled", "adopt", "replace", "change"]);
  });

  test("takes over the table of a former agent if it can", () => {
    const { keeper, calls, adopted } = keeperOf({ isAdopted: true });
    for (let count = 0; count < 2; count++) keeper.update(NOTHING);

    expect(calls).toEqual(["adopt", "change"]);
    expect(adopted).toEqual([ADOPTED]);
  });

  test("writes the whole table again if the kernel refuses a change, and reports why", () => {
    let isRefusing = true;
    const { keeper, calls, reports } = keeperOf({ refusing: () => isRefusing });
    keeper.update(NOTHING);
    keeper.update(NOTHING);
    isRefusing = false;
    keeper.update(NOTHING);

    expect(calls).toEqual(["adopt", "replace", "change", "adopt", "replace", "change"]);
    expect(reports).toEqual([expect.stringContaining("add an element")]);
  });

  test("removes the table once when it is not wanted, and replaces it when it is wanted again", () => {
    let isWanted = false;
    const { keeper, calls } = keeperOf({ isWanted: () => isWanted });
    keeper.update(NOTHING);
    keeper.update(NOTHING);
    isWanted = true;
    keeper.update(NOTHING);

    expect(calls).toEqual(["remove", "replace"]);
  });

  test("reverts what another program changed, and names it", () => {
    const { keeper, calls, reports } = keeperOf({ noticed: { kind: "changed", by: '"nft" (process 7)' } });
    keeper.revertForeignChanges();
    keeper.update(NOTHING);
    keeper.revertForeignChanges();

    expect(calls).toEqual(["adopt", "replace", "adopt", "replace"]);
    expect(reports).toEqual([expect.stringContaining('"nft" (process 7)')]);
  });

  test.each([
    [undefined, ["adopt", "adopt", "compare"]],
    ['chain "a" is missing', ["adopt", "adopt", "compare", "replace"]],
  ])(
    "replaces a changed table only if changing it back does not help; difference after that: %p",
    (difference, expected) => {
      const noticed = { kind: "changed", by: '"nft" (process 7)' } as const;
      const { keeper, calls } = keeperOf({ noticed, isAdopted: true, ...(difference && { difference }) });
      keeper.update(NOTHING);
      keeper.revertForeignChanges();

      expect(calls).toEqual(expected);
    },
  );

  test.each([
    [undefined, ["adopt", "replace", "compare", "compare"]],
    ['chain "a" is missing', ["adopt", "replace", "compare", "adopt", "replace", "compare", "adopt", "replace"]],
  ])("compares the table if messages were lost and when it is due; difference: %p", (difference, expected) => {
    const { keeper, calls } = keeperOf({ noticed: { kind: "unknown" }, ...(difference && { difference }) });
    keeper.compare();
    keeper.update(NOTHING);
    keeper.revertForeignChanges();
    keeper.compare();

    expect(calls).toEqual(expected);
  });

  test("compares again later if other programs change rules so fast that the table cannot be read", () => {
    let isBusy = true;
    const { keeper, calls } = keeperOf({ isBusy: () => isBusy, difference: "chain missing" });
    keeper.update(NOTHING);
    keeper.compare();
    keeper.revertForeignChanges();
    expect(calls).toEqual(["adopt", "replace", "compare", "compare"]);

    isBusy = false;
    keeper.revertForeignChanges();
    expect(calls.slice(4)).toEqual(["compare", "adopt", "replace"]);
  });
});
