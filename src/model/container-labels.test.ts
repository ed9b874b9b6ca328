import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { API_VERSION, identity } from "../identity.ts";
import {
  CONTAINER_ORCHESTRATOR,
  type ContainerLabels,
  checkSameTarget,
  containerLabels,
  inheritedContainerLabels,
  isSameTarget,
  targetKey,
} from "./container-labels.ts";
import { NETWORK_ANNOTATION } from "./endpoint-labels.ts";
import { workloadEndpoint } from "./workload-endpoint.ts";

const decode = (spec: object) =>
  containerLabels.decode({ apiVersion: API_VERSION, kind: "ContainerLabels", metadata: { name: "a" }, spec });
const LABELS = { role: "web" };

describe("ContainerLabels", () => {
  test.each([
    { node: "n1", container: "Web_1.x", labels: LABELS },
    { network: "pods", labels: LABELS },
  ])("accepts %j", (spec) => {
    expect(decode(spec)).toMatchObject({ ok: true, value: { spec } });
  });

  test.each([
    [{ labels: LABELS }, ["spec.container", "spec.node"]],
    [{ container: "web", labels: LABELS }, ["spec.node"]],
    [{ node: "n1", labels: LABELS }, ["spec.container"]],
    [{ node: "n1", container: "", labels: LABELS }, ["spec.container"]],
    [{ node: "n1", container: "web", network: "pods", labels: LABELS }, ["spec.network"]],
    [{ node: "n1", network: "pods", labels: LABELS }, ["spec.node"]],
    [{ network: "", labels: LABELS }, ["spec.network"]],
    [{ node: "a/b", container: "web", labels: LABELS }, ["spec.node"]],
    [{ node: "n".repeat(254), container: "web", labels: LABELS }, ["spec.node"]],
    [{ node: "n1", container: "my/web", labels: LABELS }, ["spec.container"]],
    [{ node: "n1", container: "a b", labels: LABELS }, ["spec.container"]],
    [{ node: "n1", container: "_web", labels: LABELS }, ["spec.container"]],
    [{ network: "my net", labels: LABELS }, ["spec.network"]],
    [{ network: "-net", labels: LABELS }, ["spec.network"]],
    [{ network: "pods" }, ["spec.labels"]],
    [{ network: "pods", labels: {} }, ["spec.labels"]],
    [{ network: "pods", labels: { "my role": "web" } }, ["spec.labels"]],
    [{ network: "pods", labels: { [`${identity.labelPrefix}namespace`]: "kube-system" } }, ["spec.labels"]],
    [{ network: "pods", labels: { "pcns.team": "a" } }, ["spec.labels"]],
    [{ network: "pods", labels: { "pcsa.team": "a" } }, ["spec.labels"]],
  ])("refuses %j", (spec, paths) => {
    const decoded = decode(spec);

    expect(decoded.ok ? [] : decoded.problems.map(({ path }) => path)).toEqual(paths);
  });

  test("refuses a second one about the same container", () => {
    const made = (name: string, spec: object) => containerLabels.make({ name }, { labels: LABELS, ...spec });
    const web = made("a", { node: "n1", container: "web" });

    expect(checkSameTarget(made("b", { node: "n1", container: "web" }), [web])).toMatchObject([
      { path: "spec.container", value: "web", message: expect.stringContaining('ContainerLabels "a"') },
    ]);
    expect(checkSameTarget(made("b", { node: "n2", container: "web" }), [web])).toEqual([]);
    expect(checkSameTarget(made("b", { network: "web" }), [web])).toEqual([]);
    expect(checkSameTarget(web, [web])).toEqual([]);
  });
});

describe("targetKey()", () => {
  test("is never the same for two targets, whatever their names are", () => {
    const names = fc.string({ unit: fc.constantFrom("a", " ", '"', ",", "]", ".") });
    const targets = fc.oneof(fc.record({ network: names }), fc.record({ node: names, container: names }));
    fc.assert(
      fc.property(targets, targets, (left, right) => {
        expect(targetKey(left) === targetKey(right)).toBe(isSameTarget(left, right));
      }),
    );
    expect(targetKey({ node: "n1 a", container: "b" })).not.toBe(targetKey({ node: "n1", container: "a b" }));
  });
});

describe("inheritedContainerLabels()", () => {
  const endpoint = (spec: object = {}) =>
    workloadEndpoint.make(
      { name: "n1-cni-c1-eth0", namespace: "default", annotations: { [NETWORK_ANNOTATION]: "pods" } },
      { orchestrator: CONTAINER_ORCHESTRATOR, node: "n1", workload: "web", ...spec },
    );
  const about = (name: string, spec: Partial<ContainerLabels["spec"]>, labels: Record<string, string>) =>
    containerLabels.make({ name }, { ...spec, labels });
  const WEB = { node: "n1", container: "web" };

  test("gives the labels of the container and those of its network, and the container's win", () => {
    const all = [about("a", { network: "pods" }, { role: "any", tier: "front" }), about("b", WEB, { role: "web" })];

    expect(inheritedContainerLabels(endpoint(), all)).toEqual({ role: "web", tier: "front" });
  });

  test("gives those of both if two are about the same, and the first by name wins", () => {
    const all = [about("b", WEB, { role: "b", more: "b" }), about("a", WEB, { role: "a" })];

    expect(inheritedContainerLabels(endpoint(), all)).toEqual({ role: "a", more: "b" });
  });

  test.each([
    ["of another container", endpoint({ workload: "db" }), WEB],
    ["of another node", endpoint({ node: "n2" }), WEB],
    ["without a name", workloadEndpoint.make({ name: "x" }, { orchestrator: CONTAINER_ORCHESTRATOR }), { node: "n1" }],
    ["of a pod", endpoint({ orchestrator: "k8s", pod: "web" }), WEB],
    ["of another network", endpoint(), { network: "slow" }],
    ["if the record is damaged", endpoint(), { container: "web" }],
    ["if the record is about both", endpoint(), { ...WEB, network: "pods" }],
    ["if the record names a node of the network", endpoint(), { node: "n1", network: "pods" }],
  ])("gives nothing to an endpoint %s", (_, other, spec) => {
    expect(inheritedContainerLabels(other, [about("a", spec, LABELS)])).toEqual({});
  });

  test("reads a list of resources once, however many endpoints ask", () => {
    let reads = 0;
    const all = Array.from({ length: 100 }, (_, index) => {
      const { spec, ...rest } = about(`l${index}`, { node: "n1", container: `c${index}` }, { role: `${index}` });
      const counted = { ...rest, spec };
      return Object.defineProperty(counted, "spec", {
        get: () => {
          reads += 1;
          return spec;
        },
      });
    });
    const given = all.map((_, index) => inheritedContainerLabels(endpoint({ workload: `c${index}` }), all));
    const problems = all.flatMap((each) => checkSameTarget(each, all));

    expect([given[0], given[99], problems]).toEqual([{ role: "0" }, { role: "99" }, []]);
    expect(reads).toBeLessThan(10 * all.length);
  });

  test("gives no label that only the product may set, whatever is stored", () => {
    const stored = about("a", WEB, { ...LABELS, [`${identity.labelPrefix}namespace`]: "x", "pcns.a": "b" });

    expect(inheritedContainerLabels(endpoint(), [stored])).toEqual(LABELS);
  });
});
