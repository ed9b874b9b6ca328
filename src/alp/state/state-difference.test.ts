import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ImitatedSidecar } from "../../../test/support/imitated-sidecar.ts";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { LOAD_NODE, policyLoad, remoteEndpoint } from "../../../test/support/policy-load.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import { histories, LOCAL_NODE } from "../../../test/support/random-cluster.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { PolicyCompiler } from "../../policy/compile/compiler.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import { SidecarStates } from "./sidecar-states.ts";
import { differenceOf, type SentState, type StateDifference } from "./state-difference.ts";

const RUNS = proofSize({ everyDay: 100, soak: 5_000 });

describe("differenceOf()", () => {
  test("after any changes, a sidecar that missed some of them knows the same as one that has just connected", () => {
    fc.assert(
      fc.property(histories, fc.array(fc.boolean()), (history, connectsAt) => {
        const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
        const states = new SidecarStates(compiler);
        const sidecars = new Map<string, FedSidecar>();
        let before: PolicyResources = NO_RESOURCES;
        for (const [index, cluster] of history.entries()) {
          compiler.update(changesBetween(before, cluster));
          before = cluster;
          const isBusy = connectsAt[index] ?? false;
          if (isBusy && index < history.length - 1) continue;
          for (const key of compiler.localEndpoints.keys()) {
            const sidecar = sidecars.get(key) ?? new FedSidecar(states, key);
            sidecars.set(key, sidecar);
            sidecar.feed();
          }
        }
        const fresh = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
        fresh.update(changesBetween(NO_RESOURCES, before));
        const freshStates = new SidecarStates(fresh);
        for (const key of fresh.localEndpoints.keys()) {
          const wanted = new FedSidecar(freshStates, key);
          wanted.feed();
          expect(sidecars.get(key)?.knows.knowledge).toEqual(wanted.knows.knowledge);
        }
      }),
      { numRuns: RUNS },
    );
  });

  test("one member more of a large set is sent alone", () => {
    const { compiler, sidecar, cluster } = largeSet();
    expect(sidecar.feed()?.update.revision).toBe(1);
    const [members] = sidecar.knows.sets.values();
    expect(members?.size).toBe(1_000);

    compiler.update(
      changesBetween(cluster, { ...cluster, endpoints: [...cluster.endpoints, remoteEndpoint(200_000, 0)] }),
    );

    const update = sidecar.feed()?.update;
    expect(update).toEqual({
      type: "update",
      revision: 2,
      sets: { [Object.keys(update?.sets ?? {})[0] ?? ""]: expect.anything() },
    });
    expect(JSON.stringify(update).length).toBeLessThan(150);
    expect(members?.size).toBe(1_001);
    expect(sidecar.feed()).toBeUndefined();
  });

  test("what was changed and changed back is not sent", () => {
    const { compiler, sidecar, cluster } = largeSet();
    sidecar.feed();
    const more = { ...cluster, endpoints: [...cluster.endpoints, remoteEndpoint(200_000, 0)] };
    compiler.update(changesBetween(cluster, more));
    compiler.update(changesBetween(more, cluster));
    expect(sidecar.feed()).toBeUndefined();
  });

  test("a set that changed more than is remembered is sent as a whole", () => {
    const { compiler, sidecar, cluster } = largeSet();
    sidecar.feed();
    const others = Array.from({ length: 5_000 }, (_, index) => remoteEndpoint(200_000 + index, 0));
    compiler.update(changesBetween(cluster, { ...cluster, endpoints: [...cluster.endpoints, ...others] }));
    const [change] = Object.values(sidecar.feed()?.update.sets ?? {});
    expect(change).toHaveProperty("members");
    expect([...sidecar.knows.sets.values()][0]?.size).toBe(6_000);
  });
});

class FedSidecar {
  readonly knows = new ImitatedSidecar();
  private sent: SentState | undefined;

  constructor(
    private readonly states: SidecarStates,
    private readonly key: string,
  ) {}

  feed(): StateDifference | undefined {
    const state = this.states.stateOf(this.key);
    if (state === undefined) throw new Error(`no state of ${this.key}`);
    const difference = differenceOf(this.sent, state);
    if (difference === undefined) return undefined;
    this.knows.apply(JSON.parse(JSON.stringify(difference.update)));
    this.sent = difference.sent;
    return difference;
  }
}

/** An endpoint whose policy allows 1,000 others. */
function largeSet() {
  const load = policyLoad({ locals: 100, remotes: 100, policies: 100 });
  const others = Array.from({ length: 998 }, (_, index) => remoteEndpoint(1_000 + index, 0));
  const cluster = { ...load, endpoints: [...load.endpoints, ...others] };
  const compiler = new PolicyCompiler({ node: LOAD_NODE });
  compiler.update(changesBetween(NO_RESOURCES, cluster));
  const { name, namespace = "" } = load.endpoints[0]?.metadata ?? { name: "" };
  return { compiler, sidecar: new FedSidecar(new SidecarStates(compiler), ENDPOINT.key({ name, namespace })), cluster };
}
