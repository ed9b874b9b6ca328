import { describe, expect, test } from "bun:test";
import { API_VERSION, identity } from "../../identity.ts";
import { NETWORK_FIELD } from "../../model/installation/names.ts";
import { type IPPool, ipPool } from "../../model/ip-pool.ts";
import { formatProblem } from "../../model/problem.ts";
import { withManagedLabel } from "../managed-by-label.ts";
import { type PoolPlan, planPools } from "./plan-pools.ts";

function pool(name: string, cidr: string, spec: object = {}): IPPool {
  const decoded = ipPool.decode({
    apiVersion: API_VERSION,
    kind: "IPPool",
    metadata: { name },
    spec: { cidr, ...spec },
  });
  if (!decoded.ok) throw new Error(decoded.problems.map(formatProblem).join("; "));
  return decoded.value;
}

const managed = (name: string, cidr: string, spec: object = {}) => withManagedLabel(pool(name, cidr, spec));

function summary({ create, update, adopt, disable, problems }: PoolPlan) {
  const names = (pools: readonly IPPool[]) => pools.map(({ metadata }) => metadata.name);
  return {
    create: names(create),
    update: names(update),
    adopt: names(adopt),
    disable: names(disable),
    problems: problems.map(formatProblem),
  };
}

const NOTHING = { create: [], update: [], adopt: [], disable: [], problems: [] };
const PATH = `spec.${NETWORK_FIELD}.ipPools[0]`;

describe("planPools()", () => {
  test("creates declared pools", () => {
    expect(summary(planPools([managed("a", "10.0.0.0/16")], []))).toEqual({ ...NOTHING, create: ["a"] });
  });

  test("leaves a pool as it is if it is as declared", () => {
    const existing = managed("a", "10.0.0.0/16", { allowedUses: ["Tunnel", "Workload"] });

    expect(summary(planPools([managed("a", "10.0.0.0/16")], [existing]))).toEqual(NOTHING);
  });

  test("changes a managed pool, and keeps its metadata", () => {
    const existing = managed("a", "10.0.0.0/16");
    const before = {
      ...existing,
      metadata: { ...existing.metadata, uid: "1", labels: { ...existing.metadata.labels, own: "1" } },
    };
    const plan = planPools([managed("a", "10.0.0.0/16", { natOutgoing: true })], [before]);

    expect(summary(plan)).toEqual({ ...NOTHING, update: ["a"] });
    expect(plan.update[0]?.metadata).toEqual(before.metadata);
    expect(plan.update[0]?.spec.natOutgoing).toBe(true);
  });

  test("takes a namespaceSelector away that is no longer declared", () => {
    const before = managed("a", "10.0.0.0/16", { namespaceSelector: "has(tenant)" });
    const plan = planPools([managed("a", "10.0.0.0/16")], [before]);

    expect(summary(plan)).toEqual({ ...NOTHING, update: ["a"] });
    expect(plan.update[0]?.spec).not.toHaveProperty("namespaceSelector");
  });

  test("adopts a pool of others that is exactly as declared", () => {
    const plan = planPools([managed("a", "10.0.0.0/16")], [pool("a", "10.0.0.0/16")]);

    expect(summary(plan)).toEqual({ ...NOTHING, adopt: ["a"] });
    expect(plan.adopt[0]?.metadata.labels).toEqual({ "app.kubernetes.io/managed-by": identity.operator });
  });

  test("refuses to change a pool of others, and says how to give it to the operator", () => {
    const { problems } = summary(
      planPools([managed("a", "10.0.0.0/16", { natOutgoing: true })], [pool("a", "10.0.0.0/16")]),
    );

    expect(problems).toEqual([
      `${PATH}: "a" differs from the pool that exists (natOutgoing false), which the operator does not manage; declare it as it is, or give it to the operator: label it app.kubernetes.io/managed-by=${identity.operator}`,
    ]);
  });

  test("disables a managed pool that is no longer declared, and never deletes one", () => {
    const existing = [
      managed("a", "10.0.0.0/16"),
      managed("b", "10.1.0.0/16"),
      pool("c", "10.2.0.0/16"),
      managed("d", "10.3.0.0/16", { disabled: true }),
    ];
    const plan = planPools([managed("a", "10.0.0.0/16")], existing);

    expect(summary(plan)).toEqual({ ...NOTHING, disable: ["b"] });
    expect(plan.disable[0]?.spec.disabled).toBe(true);
  });

  test("changes nothing if no pools are declared", () => {
    expect(summary(planPools([], [managed("a", "10.0.0.0/16"), pool("b", "10.1.0.0/16")]))).toEqual(NOTHING);
  });

  test.each([
    [
      "blockSize",
      managed("a", "10.0.0.0/16", { blockSize: 27 }),
      managed("a", "10.0.0.0/16"),
      `${PATH}.blockSize: 27 cannot be changed from 26`,
    ],
    [
      "name",
      managed("b", "10.0.0.0/16"),
      managed("a", "10.0.0.0/16"),
      `${PATH}.name: "b" cannot be changed: the pool 10.0.0.0/16 is called "a"; use that name`,
    ],
    [
      "CIDR",
      managed("a", "10.1.0.0/16"),
      managed("a", "10.0.0.0/16"),
      `${PATH}.name: "a" is the name of the pool 10.0.0.0/16; use another name`,
    ],
    [
      "overlap",
      managed("b", "10.0.1.0/24"),
      pool("a", "10.0.0.0/16"),
      `${PATH}.cidr: "10.0.1.0/24" overlaps pool "a" (10.0.0.0/16); use a CIDR`,
    ],
  ])("refuses a changed %s", (_, declared, existing, message) => {
    const { problems } = summary(planPools([declared], [existing]));

    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
  });
});
