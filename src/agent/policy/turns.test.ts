import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { KindSnapshot } from "../../datastore/replica/kind-snapshot.ts";
import { nameInKey, resourceKey } from "../../model/keys.ts";
import { type NetworkPolicy, networkPolicy } from "../../model/network-policy.ts";
import { nodeAgentConfiguration, nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { tier } from "../../model/tier.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../model/workload-endpoint.ts";
import { PolicyCompiler } from "../../policy/compile/compiler.ts";
import { POLICY_KINDS, type PolicyChanges, type PolicyUpdate } from "../../policy/inputs.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import { limitsOfOne, policyLimits } from "../../policy/policy-size.ts";
import { costOfChanges, type EnforcedPolicies, inTurns, LARGE, reportLongWaits, WaitingPolicies } from "./turns.ts";

const selecting = (count: number, label = "app") =>
  Array.from({ length: count }, (_, index) => ({
    action: "Allow" as const,
    source: { selector: `${label} == '${index}'` },
  }));
const policy = (namespace: string, selectors: number): NetworkPolicy =>
  networkPolicy.make({ name: `policy-${namespace}`, namespace }, { tier: "default", ingress: selecting(selectors) });
const large = (namespace: string) => policy(namespace, LARGE.lists + 1);
const small = (namespace: string) => policy(namespace, 1);
const pod = (namespace: string, name: string, address = "10.0.0.1"): WorkloadEndpoint =>
  workloadEndpoint.make({ name, namespace }, { node: "here", interfaceName: "vend0", ipNetworks: [`${address}/32`] });

const WITHIN_LIMITS: EnforcedPolicies = { reachesLimit: () => false, isCarriedOut: () => true };

type State = Partial<PolicyResources>;

const snapshot: PolicyUpdate["snapshot"] = {
  ...Object.fromEntries(Object.keys(POLICY_KINDS).map((kind) => [kind, KindSnapshot.empty()])),
} as PolicyUpdate["snapshot"];

/** A replica that merges what nobody has asked for. */
class Updates {
  private seen: PolicyResources = NO_RESOURCES;
  private now: PolicyResources = NO_RESOURCES;
  private isFirst = true;
  private isEnded = false;
  private news = Promise.withResolvers<void>();

  change(state: State): void {
    this.now = { ...this.now, ...state };
    this.wake();
  }

  end(): void {
    this.isEnded = true;
    this.wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<PolicyUpdate> {
    while (!this.isEnded) {
      const { promise } = this.news;
      if (this.isFirst || this.seen !== this.now) {
        const changes = changesBetween(this.seen, this.now);
        this.isFirst = false;
        this.seen = this.now;
        yield { snapshot, changes };
      } else await promise;
    }
  }

  private wake(): void {
    const { resolve } = this.news;
    this.news = Promise.withResolvers();
    resolve();
  }
}

const nextTask = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Time passes by waits that nothing ends early, and as the test says. */
class Clock {
  now = 0;
  readonly elapsed = () => this.now;
  readonly wait = async (milliseconds: number, signal: AbortSignal) => {
    for (let tasks = 0; tasks < 3 && !signal.aborted; tasks++) await nextTask();
    if (!signal.aborted) this.now += milliseconds;
  };
}

const namesIn = ({ networkPolicies, endpoints }: PolicyChanges) =>
  [...networkPolicies, ...endpoints].map(({ kind, key }) => `${kind} ${nameInKey(key)}`);

/** There is a table after the first update. */
const means = (clock: Clock, mayHaveTable = true) => {
  let updates = 0;
  return {
    ...{ elapsed: clock.elapsed, wait: clock.wait, hasTable: () => mayHaveTable && updates++ > 0 },
    waiting: new WaitingPolicies((_, changes) => costOfChanges(changes, WITHIN_LIMITS), clock.elapsed),
  };
};

/** What the kernel gets, one update after another; between them the steps happen. */
async function played(
  first: State,
  steps: readonly State[],
  { mayHaveTable = true } = {},
): Promise<readonly (readonly string[])[]> {
  const updates = new Updates();
  updates.change(first);
  const got: (readonly string[])[] = [];
  const left = [...steps];
  const clock = new Clock();
  for await (const { changes } of inTurns(updates, means(clock, mayHaveTable))) {
    got.push(namesIn(changes));
    // As long as others have, so that a turn follows each update.
    clock.now += 1_000;
    const step = left.shift();
    if (step === undefined && got.length > steps.length) updates.end();
    if (step !== undefined) updates.change(step);
    // As the loop does after each update: others get time to send theirs.
    await nextTask();
  }
  return got;
}

describe("costOfChanges()", () => {
  const keyOf = ({ metadata: { name, namespace = "" } }: NetworkPolicy) =>
    resourceKey("networkpolicies", { namespace, name });
  const put = (value: NetworkPolicy, previous?: NetworkPolicy) => ({
    kind: "put" as const,
    ...{ key: keyOf(value), value, previous },
  });
  const isLarge = (changes: Parameters<typeof costOfChanges>[0], enforced = WITHIN_LIMITS) =>
    costOfChanges(changes, enforced) > 1;

  test("counts the lists that come, and those that go", () => {
    expect(isLarge([put(policy("a", LARGE.lists))])).toBe(false);
    expect(isLarge([put(policy("a", LARGE.lists + 1))])).toBe(true);
    expect(isLarge([put(policy("a", 1), policy("a", LARGE.lists + 1))])).toBe(false);
    expect(isLarge([put(policy("a", 1), policy("a", LARGE.lists + 2))])).toBe(true);
  });

  test("does not count lists that stay, nor a policy that stays", () => {
    const many = LARGE.lists * 2;
    const edited = networkPolicy.make(
      { name: "policy-a", namespace: "a" },
      { tier: "default", ingress: [{ action: "Deny" }, ...selecting(many)] },
    );
    expect(isLarge([put(edited, policy("a", many))])).toBe(false);
    expect(costOfChanges([put(policy("a", many), policy("a", many))], WITHIN_LIMITS)).toBe(0);
  });

  test("counts all rules of a policy that differs", () => {
    const rules = Array.from({ length: LARGE.rules / 2 }, () => ({ action: "Allow" as const }));
    const spec = (more: typeof rules) =>
      networkPolicy.make({ name: "policy-a", namespace: "a" }, { tier: "default", ingress: [...rules, ...more] });
    expect(isLarge([put(spec([]), spec([]))])).toBe(false);
    expect(isLarge([put(spec([{ action: "Allow" }]), spec([]))])).toBe(true);
  });

  const MANY = LARGE.lists + 1;
  const selectsOthers = { ...policy("a", MANY), spec: { ...policy("a", MANY).spec, selector: "app == 'a'" } };
  test("counts all lists of a policy that selects other pods", () => {
    expect(isLarge([put(selectsOthers, policy("a", MANY))])).toBe(true);
  });

  test("counts all lists of a policy that denies because it is too large, or did", () => {
    const compiler = new PolicyCompiler({ node: "here" });
    const most = LARGE.lists + 50;
    const configuration = nodeAgentConfiguration.make({ name: "default" }, { namespacePolicyLists: most * 4 });
    const [within, beyond] = [policy("a", most), policy("a", most + 1)];
    const enforced = { ...WITHIN_LIMITS, isCarriedOut: compiler.isCarriedOut.bind(compiler) };
    const change = (value: NetworkPolicy, previous: NetworkPolicy) => [put(value, previous)];
    const enforce = (value: NetworkPolicy) =>
      compiler.update(changesBetween(NO_RESOURCES, { ...NO_RESOURCES, networkPolicies: [value] }, configuration));

    enforce(within);
    expect(isLarge(change(policy("a", most - 1), within), enforced)).toBe(false);
    expect(isLarge(change(beyond, within), enforced)).toBe(true);
    enforce(beyond);
    expect(isLarge(change(within, beyond), enforced)).toBe(true);
  });

  test("a small change that can close or open a large policy is large", () => {
    const compiler = new PolicyCompiler({ node: "here" });
    const most = policyLimits(nodeAgentSettings([], "here"));
    const share = limitsOfOne(most).lists;
    const full = Array.from({ length: most.lists / share }, (_, index) =>
      networkPolicy.make(
        { name: `p${index}`, namespace: "a" },
        { tier: "default", ingress: selecting(share, `p${index}`) },
      ),
    );
    compiler.update(changesBetween(NO_RESOURCES, { ...NO_RESOURCES, networkPolicies: full }));
    const reaches = (namespace: string) =>
      isLarge([put(policy(namespace, 1))], {
        ...WITHIN_LIMITS,
        reachesLimit: (size) => compiler.reachesLimit(namespace, size),
      });

    expect([reaches("a"), reaches("b")]).toEqual([true, false]);
  });

  test("a small change is large if the namespace has nearly as many addresses as it may have", () => {
    const compiler = new PolicyCompiler({ node: "here" });
    const withNetworks = (namespace: string, count: number) => {
      const nets = Array.from({ length: count }, (_, index) => `10.${index}.0.0/16`);
      const ingress = [{ action: "Allow" as const, source: { nets } }];
      return networkPolicy.make({ name: "nets", namespace }, { tier: "default", ingress });
    };
    const resources = { ...NO_RESOURCES, networkPolicies: [withNetworks("a", 40), withNetworks("b", 30)] };
    const configuration = nodeAgentConfiguration.make({ name: "default" }, { namespacePolicyAddresses: 100 });
    compiler.update(changesBetween(NO_RESOURCES, resources, configuration));
    const reaches = (namespace: string) =>
      isLarge([put(policy(namespace, 1))], {
        ...WITHIN_LIMITS,
        reachesLimit: (size) => compiler.reachesLimit(namespace, size),
      });

    // Each network has two ends.
    expect([reaches("a"), reaches("b")]).toEqual([true, false]);
  });
});

describe("WaitingPolicies", () => {
  const NAMES = Array.from({ length: 10 }, (_, index) => `n${index}`);
  const changed = (namespaces: readonly string[]) =>
    changesBetween(NO_RESOURCES, { ...NO_RESOURCES, networkPolicies: namespaces.map(small) });
  const namespacesOf = (changes: PolicyChanges | undefined) =>
    changes?.networkPolicies.map(({ key }) => nameInKey(key).replace("policy-", "")) ?? [];

  test("one that costs little does not wait for all that came before it", () => {
    const waiting = new WaitingPolicies(
      (namespace) => (namespace === "medium" ? 2 : 10),
      () => 0,
    );
    waiting.divide(changed(NAMES));
    waiting.takeNext();
    waiting.divide(changed(["medium"]));

    expect([...namespacesOf(waiting.takeNext()), ...namespacesOf(waiting.takeNext())]).toContain("medium");
  });

  test("says how many wait, and how long the first of them has, whatever it changes meanwhile", () => {
    const clock = new Clock();
    const waiting = new WaitingPolicies(() => 2, clock.elapsed);
    const facts = [waiting.facts];
    for (const namespaces of [["a"], ["b"], ["a"]]) {
      waiting.divide(changed(namespaces));
      clock.now += 1_000;
      facts.push(waiting.facts);
    }
    waiting.takeNext();

    expect([...facts, waiting.facts].map(({ namespaces, milliseconds }) => [namespaces, milliseconds])).toEqual([
      [0, 0],
      [1, 1_000],
      [2, 2_000],
      [2, 3_000],
      [1, 2_000],
    ]);
  });

  test("each has its turn after at most twice as many as had waited before it, whatever comes meanwhile", () => {
    const namespaces = fc.subarray(NAMES);
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...NAMES), fc.integer({ min: 2, max: 5 })),
        fc.array(namespaces, { minLength: 30, maxLength: 30 }),
        (costs, steps) => {
          const waiting = new WaitingPolicies(
            (namespace) => costs[namespace] ?? 2,
            () => 0,
          );
          const turnsLeft = new Map<string, number>();
          for (const step of steps) {
            waiting.divide(changed(step));
            for (const each of step) if (!turnsLeft.has(each)) turnsLeft.set(each, 2 * (turnsLeft.size + 1));
            for (const each of namespacesOf(waiting.takeNext())) turnsLeft.delete(each);
            for (const [each, left] of turnsLeft) turnsLeft.set(each, left - 1);
            expect([...turnsLeft.values()].filter((left) => left <= 0)).toEqual([]);
          }
        },
      ),
    );
  });
});

describe("reportLongWaits()", () => {
  test("reports once that policies wait for long, and again if they do later", () => {
    const reports: string[] = [];
    const note = reportLongWaits((message) => reports.push(message));
    const counts = [10_000, 10_001, 30_000, 0, 11_000].map((milliseconds) => {
      note({ namespaces: 1, milliseconds });
      return reports.length;
    });

    expect(counts).toEqual([0, 1, 1, 1, 2]);
  });
});

interface Moment {
  readonly got: readonly Got[];
  readonly names: readonly string[];
  readonly updates: Updates;
  readonly clock: Clock;
  readonly waiting: WaitingPolicies;
}

type Got = readonly [atMilliseconds: number, names: readonly string[]];

/** What takes effect, and when. `react`: with what follows from it, and how long it took. */
async function recorded(react: (moment: Moment) => void): Promise<readonly Got[]> {
  const updates = new Updates();
  updates.change({});
  const clock = new Clock();
  const { waiting, ...others } = means(clock);
  const got: Got[] = [];
  for await (const { changes } of inTurns(updates, { waiting, ...others })) {
    const names = namesIn(changes);
    got.push([clock.now, names]);
    react({ got, names, updates, clock, waiting });
    await nextTask();
  }
  return got;
}

describe("inTurns()", () => {
  test("an edit of a medium tenant, and what it adds, do not wait behind large policies", async () => {
    const tenants = Array.from({ length: 10 }, (_, index) => policy(`t${index}`, 1_000));
    const [allowing, editing] = [false, true].map((isEdited) =>
      networkPolicy.make(
        { name: "edited", namespace: "medium" },
        {
          tier: "default",
          ingress: [...selecting(LARGE.lists + 1), ...(isEdited ? [{ action: "Deny" as const }] : [])],
        },
      ),
    ) as [NetworkPolicy, NetworkPolicy];
    const denyAll = networkPolicy.make({ name: "deny-all", namespace: "medium" }, { tier: "default", ingress: [] });
    const updates = new Updates();
    updates.change({ networkPolicies: [allowing] });
    const clock = new Clock();
    const got: [atMilliseconds: number, names: readonly string[]][] = [];
    for await (const { changes } of inTurns(updates, means(clock))) {
      const names = namesIn(changes);
      got.push([clock.now, names]);
      if (got.length === 1) updates.change({ networkPolicies: [...tenants, allowing] });
      if (got.length === 2) updates.change({ networkPolicies: [...tenants, editing, denyAll] });
      if (names.some((name) => name.startsWith("put policy-t"))) clock.now += 6_600;
      if (got.length === 4) updates.end();
      await nextTask();
    }

    expect(got).toEqual([
      [0, ["put edited"]],
      [100, ["put policy-t0"]],
      [6_700, ["put edited", "put deny-all"]],
      [7_700, ["put policy-t1"]],
    ]);
  });

  test("divides nothing while there is no table", async () => {
    const networkPolicies = [large("a"), large("b"), small("c")];

    expect(await played({}, [{ networkPolicies }], { mayHaveTable: false })).toEqual([
      [],
      ["put policy-a", "put policy-b", "put policy-c"],
    ]);
  });

  test("does not divide an update without a large policy", async () => {
    const networkPolicies = [small("a"), small("b")];

    expect(await played({}, [{ networkPolicies, endpoints: [pod("c", "pod")] }])).toEqual([
      [],
      ["put policy-a", "put policy-b", "put pod"],
    ]);
  });

  test("puts small changes first, then one namespace after another, and others between them", async () => {
    const bombs = [large("a"), large("b"), large("c")];

    expect(
      await played({}, [
        { networkPolicies: [...bombs, small("d")] },
        { endpoints: [pod("d", "pod")] },
        {},
        {},
        { endpoints: [pod("d", "pod"), pod("e", "other")] },
        {},
      ]),
    ).toEqual([[], ["put policy-d"], ["put policy-a"], ["put pod"], ["put policy-b"], ["put other"], ["put policy-c"]]);
  });

  test("the policies of a namespace take effect together, also those that come while it waits", async () => {
    const named = (name: string, count = LARGE.lists + 1) => ({
      ...policy("a", count),
      metadata: { name, namespace: "a" },
    });
    const networkPolicies = [large("b"), named("x"), named("y"), named("z", 1)];

    expect(await played({}, [{ networkPolicies: networkPolicies.slice(0, 2) }, { networkPolicies }])).toEqual([
      [],
      ["put policy-b"],
      ["put x", "put y", "put z"],
    ]);
  });

  test("many small policies of a namespace are as a large one", async () => {
    const networkPolicies = Array.from({ length: LARGE.lists }, (_, index) =>
      networkPolicy.make(
        { name: `p${index}`, namespace: "a" },
        { tier: "default", ingress: selecting(2, `label${index}`) },
      ),
    );

    const [, first, second] = await played({}, [{ networkPolicies: [...networkPolicies, small("b")] }, {}]);
    expect([first, second?.length]).toEqual([["put policy-b"], LARGE.lists]);
  });

  test("lets nothing wait if something changes for the whole cluster", async () => {
    const networkPolicies = [large("a"), small("b")];
    const tiers = [tier.make({ name: "first" }, { defaultAction: "Deny" })];

    expect(await played({}, [{ networkPolicies, tiers }])).toEqual([[], ["put policy-b", "put policy-a"]]);
  });

  test("a steady stream of small changes does not keep a large policy waiting", async () => {
    const updates = new Updates();
    updates.change({});
    const got: (readonly string[])[] = [];
    const clock = new Clock();
    for await (const { changes } of inTurns(updates, means(clock))) {
      clock.now += 1_000;
      got.push(namesIn(changes));
      const endpoints = [pod("b", "pod", `10.0.0.${got.length}`)];
      updates.change({ networkPolicies: [large("a"), large("c")], endpoints });
      if (got.length === 6) updates.end();
      await nextTask();
    }

    expect(got).toEqual([[], ["put pod"], ["put policy-a"], ["put pod"], ["put policy-c"], ["put pod"]]);
  });

  test("others come first for as long as the last turn took, but not for more than a second", async () => {
    const got = await recorded(({ got, names, updates, clock }) => {
      const endpoints = [pod("z", "pod", `10.0.0.${got.length}`)];
      if (got.length === 1) updates.change({ networkPolicies: ["a", "b", "c", "d"].map(large) });
      // The turn of the second one is followed by changes of others, one each 300 ms.
      else if (names.includes("put policy-b") || (names.includes("put pod") && got.length < 8)) {
        updates.change({ endpoints });
      }
      if (got.length === 10) updates.end();
      clock.now += names.includes("put pod") ? 300 : names.includes("put policy-a") ? 700 : 0;
    });

    expect(got).toEqual([
      [0, []],
      [100, ["put policy-a"]],
      [1_500, ["put policy-b"]],
      [1_500, ["put pod"]],
      [1_800, ["put pod"]],
      [2_100, ["put pod"]],
      [2_400, ["put pod"]],
      [2_700, ["put policy-c"]],
      [2_700, ["put pod"]],
      [3_100, ["put policy-d"]],
    ]);
  });

  test("others come first after an update that a namespace has joined, too, but not for more than one of these", async () => {
    const got = await recorded(({ got, updates, clock, waiting }) => {
      const networkPolicies = ["a", "b", "c", "d"].map(large);
      const podAt = (address: string) => ({ networkPolicies, endpoints: [pod("z", "pod", address)] });
      if (got.length === 1) updates.change(podAt("10.0.0.1"));
      // Each takes as long as the longest pause.
      if (got.length === 2 || got.length === 3) {
        waiting.takeAffected(() => new Set([got.length === 2 ? "a" : "b"]));
        clock.now += 1_000;
      }
      if (got.length === 2) updates.change(podAt("10.0.0.2"));
      if (got.length === 4) updates.end();
    });

    expect(got).toEqual([
      [0, []],
      [0, ["put pod"]],
      [1_000, ["put pod"]],
      [2_000, ["put policy-c"]],
    ]);
  });

  test("a turn does not follow at once after an update that a namespace has joined", async () => {
    const got = await recorded(({ got, updates, clock, waiting }) => {
      if (got.length === 1) updates.change({ networkPolicies: [large("a"), large("b")], endpoints: [pod("a", "pod")] });
      if (got.length === 2) {
        waiting.takeAffected(() => new Set(["a"]));
        clock.now += 1_500;
      }
      if (got.length === 3) updates.end();
    });

    expect(got).toEqual([
      [0, []],
      [0, ["put pod"]],
      [2_500, ["put policy-b"]],
    ]);
  });

  test("a large policy that goes takes its turn, too", async () => {
    const networkPolicies = [large("a"), small("b")];

    expect(await played({ networkPolicies }, [{ networkPolicies: [] }, {}])).toEqual([
      ["put policy-a", "put policy-b"],
      ["delete policy-b"],
      ["delete policy-a"],
    ]);
  });

  test("rejects if the updates do", async () => {
    async function* failing(): AsyncGenerator<PolicyUpdate> {
      yield { snapshot, changes: changesBetween(NO_RESOURCES, NO_RESOURCES) };
      yield { snapshot, changes: changesBetween(NO_RESOURCES, { ...NO_RESOURCES, networkPolicies: [large("a")] }) };
      throw new Error("lost");
    }
    const taken = async () => {
      for await (const _ of inTurns(failing(), means(new Clock()))) await nextTask();
    };

    await expect(taken()).rejects.toThrow("lost");
  });
});
