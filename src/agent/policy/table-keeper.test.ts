import { describe, expect, test } from "bun:test";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { errnoOf } from "../../linux/errno.ts";
import { KernelError } from "../../linux/kernel-error.ts";
import type { Noticed } from "../../linux/nftables/monitor.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { PolicyCompiler } from "../../policy/compile/compiler.ts";
import type { TableDelta } from "../../policy/table/desired-table.ts";
import type { KernelTable } from "./kernel-table.ts";
import { TableKeeper } from "./table-keeper.ts";

const NOTHING = changesBetween(NO_RESOURCES, NO_RESOURCES);

interface Imitation {
  readonly refusing?: () => boolean;
  readonly isWanted?: () => boolean;
  readonly hasUnknownContainers?: () => boolean;
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
  hasUnknownContainers = () => false,
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
  const compared: (readonly string[] | "all")[] = [];
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
    difference: (_, sets) => {
      calls.push("compare");
      compared.push(sets ?? "all");
      failIfBusy();
      return difference;
    },
    elementDifference: (_, sets) => {
      calls.push("compare elements");
      compared.push(sets);
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
    ...{ compiler, kernel, isWanted, hasUnknownContainers, report, ...(isHooked ? { compiled } : {}) },
    adopted: (delta) => void adopted.push(delta),
  });
  return { keeper, compiler, calls, compared, reports, adopted };
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

  test("writes the rules around IPVS once the host has it, and leaves the table of a former agent alone before the first update", () => {
    for (const isWanted of [true, false]) {
      const { keeper, calls } = keeperOf({ isWanted: () => isWanted });
      keeper.updateIpvs(true);
      expect(calls).toEqual([]);
    }
    const { keeper, calls } = keeperOf();
    keeper.update(NOTHING);
    for (const hasIpvs of [false, true, true]) keeper.updateIpvs(hasIpvs);
    expect(calls).toEqual(["adopt", "replace", "change"]);
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

  describe("without a policy, while containers run that no endpoint is of,", () => {
    const pod = workloadEndpoint.make(
      { name: "node-1-cni-a-eth0", namespace: "default" },
      { node: "node-1", interfaceName: "vend0", ipNetworks: ["10.0.0.1/32"] },
    );
    const WITH_POD = { ...NO_RESOURCES, endpoints: [pod] };

    test("keeps the rules of a former agent until these containers are gone", () => {
      let areUnknown = true;
      const { keeper, calls } = keeperOf({ isWanted: () => false, hasUnknownContainers: () => areUnknown });
      keeper.update(NOTHING);
      keeper.update(changesBetween(NO_RESOURCES, WITH_POD));
      keeper.revertForeignChanges();
      expect([calls, keeper.keepsFormer]).toEqual([[], true]);
      areUnknown = false;
      keeper.revertForeignChanges();
      keeper.revertForeignChanges();
      expect([calls, keeper.keepsFormer]).toEqual([["remove"], false]);
    });

    test("takes those rules over when there is a policy again", () => {
      let isWanted = false;
      const { keeper, calls } = keeperOf({
        ...{ isWanted: () => isWanted, hasUnknownContainers: () => true, isAdopted: true },
      });
      keeper.update(NOTHING);
      isWanted = true;
      keeper.update(NOTHING);
      expect([calls, keeper.keepsFormer, keeper.hasTable]).toEqual([["adopt"], false, true]);
    });

    test("keeps its own rules if policies and all endpoints of the host have gone together, not if the last policy was deleted", () => {
      for (const isLost of [true, false]) {
        let isWanted = true;
        const { keeper, calls } = keeperOf({ isWanted: () => isWanted, hasUnknownContainers: () => true });
        keeper.update(changesBetween(NO_RESOURCES, WITH_POD));
        isWanted = false;
        keeper.update(isLost ? changesBetween(WITH_POD, NO_RESOURCES) : NOTHING);
        expect(calls).toEqual(["adopt", "replace", ...(isLost ? [] : ["remove"])]);
      }
    });
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

  test("compares the sets of a large table over several looks, each once, and begins with those that are left", () => {
    const { keeper, compiler, calls, compared } = keeperOf();
    const rules = Array.from({ length: 700 }, (_, index) => ({
      action: "Allow" as const,
      source: { selector: `a == '${index}'` },
    }));
    const options = { doNotTrack: false, preDNAT: false, applyOnForward: false };
    const policy = globalNetworkPolicy.make(
      { name: "a" },
      { tier: "default", selector: "all()", ingress: rules, ...options },
    );
    const pod = workloadEndpoint.make(
      { name: "node-1-k8s-a-eth0", namespace: "red" },
      { node: "node-1", interfaceName: "vend0", ipNetworks: ["10.0.0.1/32"] },
    );
    keeper.update(changesBetween(NO_RESOURCES, { ...NO_RESOURCES, endpoints: [pod], globalNetworkPolicies: [policy] }));
    const names = [...compiler.table.sets.keys()];
    expect(names.length).toBeGreaterThan(1_400);
    keeper.compare();
    keeper.revertForeignChanges();
    keeper.compare();
    for (let look = 0; look < 5; look++) keeper.revertForeignChanges();

    const [first, second, third, ...rest] = [500, 1_000, names.length].map((end, index) =>
      names.slice(index * 500, end),
    );
    expect(rest).toEqual([]);
    expect(compared).toEqual([
      ...[first, second].flatMap((each) => (each === undefined ? [] : [each])),
      [...(third ?? []), ...names.slice(0, 500 - (third?.length ?? 0))],
      names.slice(500 - (third?.length ?? 0), 1_000 - (third?.length ?? 0)),
      names.slice(1_000 - (third?.length ?? 0), 1_000),
    ]);
    expect(calls.filter((call) => call.startsWith("compare"))).toEqual([
      ...["compare", "compare elements"],
      ...["compare", "compare elements", "compare elements"],
    ]);
  });
});
