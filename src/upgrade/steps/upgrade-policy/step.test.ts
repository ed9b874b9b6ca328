import { describe, expect, test } from "bun:test";
import { type SitePlan, StepCluster } from "../../../../test/support/step-site.ts";
import { API_VERSION } from "../../../identity.ts";
import { GLOBAL_NETWORK_POLICY, HOST_ENDPOINT } from "../../../model/kinds.ts";
import type { StepPlan } from "../../engine/step.ts";
import { upgradePolicyStep as step } from "./step.ts";

const MARK = { "host-endpoint-upgrade": "" };
const LOG_AND_ALLOW = [{ action: "Log" }, { action: "Allow" }];

const put = (on: StepCluster, key: string, kind: string, metadata: object, spec: object) =>
  on.store.commit([{ kind: "create", key, value: JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec }) }]);
const endpoint = (on: StepCluster, name: string, labels: object, spec: object = {}) =>
  put(on, HOST_ENDPOINT.key({ name }), "HostEndpoint", { name, labels }, { node: "n1", interfaceName: "*", ...spec });
const policy = (on: StepCluster, name: string, spec: object) =>
  put(on, GLOBAL_NETWORK_POLICY.key({ name }), "GlobalNetworkPolicy", { name }, spec);

/** `bare` has no other policy, `ruled` has one of its own. */
async function cluster(plan: SitePlan & { readonly name?: string } = {}): Promise<StepCluster> {
  const on = new StepCluster(plan);
  await policy(on, plan.name ?? "allow-all-upgrade", {
    selector: "has(host-endpoint-upgrade)",
    types: ["Ingress", "Egress"],
    ingress: LOG_AND_ALLOW,
    egress: LOG_AND_ALLOW,
  });
  await policy(on, "edge", { selector: "role == 'edge'", types: ["Ingress", "Egress"] });
  await endpoint(on, "bare", { ...MARK, site: "west" });
  await endpoint(on, "profiled", MARK, { profiles: ["own"] });
  await endpoint(on, "ruled", { ...MARK, role: "edge" });
  return on;
}

async function planned(on: StepCluster): Promise<StepPlan> {
  const plan = await step.plan(on.site());
  if (plan === undefined) throw new Error("nothing is planned");
  return plan;
}

async function state(on: StepCluster): Promise<unknown> {
  const { answers } = await on.store.read(
    [GLOBAL_NETWORK_POLICY, HOST_ENDPOINT].map((kind) => ({ kind: "prefix", prefix: kind.prefix() })),
  );
  return answers.map((entries) =>
    entries.map(({ value }) => {
      const { metadata, spec } = JSON.parse(value);
      return { name: metadata.name, labels: metadata.labels ?? {}, spec };
    }),
  );
}

describe("the step upgrade-policy", () => {
  test.each(["allow-all-upgrade", "default.allow-all-upgrade"])(
    "names the hosts that only %s selects, and needs a review",
    async (name) => {
      const plan = await planned(await cluster({ name }));

      expect(plan.obstacles.map(({ message }) => message)).toEqual([
        'Only allow-all-upgrade selects host endpoint "bare" (ingress, egress): without it everything but failsafe ports is denied there',
      ]);
      expect(plan.notes).toEqual(
        expect.arrayContaining([
          "bare (ingress): everything but failsafe ports is denied afterwards",
          "profiled (ingress): their profiles decide afterwards",
          "ruled (egress): their other policies decide afterwards, and deny what they do not allow",
        ]),
      );
    },
  );

  test("is not needed without the policy", async () => {
    expect(await step.plan(new StepCluster().site())).toBeUndefined();
  });

  test("does not act without a review if a host would be closed since the plan", async () => {
    const on = await cluster();
    await expect(step.act(on.site(), await planned(on))).rejects.toMatchObject({ kind: "resource-changed" });

    expect(on.writes).toEqual([]);
  });

  test.each(["kubernetes", "etcd"] as const)(
    "killed at any write it ends the same, and goes back, on %s",
    async (datastore) => {
      const reviewed = { datastore, options: { reviewed: true } };
      const before = await state(await cluster(reviewed));
      const undisturbed = await cluster(reviewed);
      const plan = await planned(undisturbed);
      expect(plan.obstacles).toEqual([]);
      await undisturbed.run(step, plan);
      const after = await state(undisturbed);
      expect(after).toMatchObject([[{ name: "edge" }], [{ name: "bare" }, { name: "profiled" }, { name: "ruled" }]]);
      expect(JSON.stringify(after)).not.toContain("host-endpoint-upgrade");

      const writes = undisturbed.writes.length;
      expect(writes).toBe(5);
      await undisturbed.run(step, plan);
      expect(undisturbed.writes).toHaveLength(writes);
      for (let write = 1; write <= writes; write += 1) {
        const on = await cluster(reviewed);
        expect(await on.killedAt(write, () => on.run(step, plan))).toBe(true);
        await on.run(step, plan);
        expect(await state(on)).toEqual(after);

        const rollback = () => step.rollback?.(on.site(), plan) ?? Promise.resolve();
        expect(await on.killedAt(write, rollback)).toBe(write < writes);
        await rollback();
        expect(await state(on)).toEqual(before);
      }
    },
  );
});
