import { describe, expect, test } from "bun:test";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { identity } from "../../identity.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { PolicyResources } from "../judge/resources.ts";
import { SIDECARS } from "../render/base-chains.ts";
import { PolicyCompiler } from "./compiler.ts";

const interfaceOf = (name: string) => `${identity.interfacePrefix}${name}`;
const keyOf = (pod: string) => ENDPOINT.key({ namespace: "red", name: `here-k8s-${pod}-eth0` });

/** The pods, each with its interface. */
function clusterOf(pods: Readonly<Record<string, string>>, node = "here", generation = 1): PolicyResources {
  const endpoints = Object.entries(pods).map(([pod, interfaceName]) =>
    workloadEndpoint.make(
      { name: `here-k8s-${pod}-eth0`, namespace: "red", uid: `${pod}-${generation}` },
      { node, pod, orchestrator: "k8s", endpoint: "eth0", interfaceName: interfaceOf(interfaceName) },
    ),
  );
  return { ...NO_RESOURCES, endpoints };
}

function sidecarsIn(compiler: PolicyCompiler): readonly string[] {
  return [...(compiler.table.sets.get(SIDECARS)?.elements.keys() ?? [])].sort();
}

describe("setSidecars()", () => {
  const compilerOf = (cluster: PolicyResources, ...pods: readonly string[]) => {
    const compiler = new PolicyCompiler({ node: "here" });
    compiler.update(changesBetween(NO_RESOURCES, cluster));
    compiler.setSidecars({ endpoints: new Set(pods.map(keyOf)) });
    return compiler;
  };

  test("writes the interfaces of the endpoints, and says whether any has changed", () => {
    const compiler = compilerOf(clusterOf({ a: "1", b: "2" }), "a", "unknown");

    expect(sidecarsIn(compiler)).toEqual([interfaceOf("1")]);
    expect(compiler.setSidecars({ endpoints: new Set([keyOf("a")]) })).toBe("same");
    expect(compiler.setSidecars({ endpoints: new Set([keyOf("b")]) })).toBe("changed");
    expect(sidecarsIn(compiler)).toEqual([interfaceOf("2")]);
    expect(compiler.setSidecars({ endpoints: new Set() })).toBe("changed");
    expect(sidecarsIn(compiler)).toEqual([]);
  });

  test("one element is one change of the kernel, without any rule", () => {
    const compiler = compilerOf(clusterOf({ a: "1" }));
    compiler.takeDelta();
    compiler.setSidecars({ endpoints: new Set([keyOf("a")]) });

    const { chains, sets, elements } = compiler.takeDelta();

    expect([chains.size, sets.size]).toEqual([0, 0]);
    expect([...elements.keys()]).toEqual([SIDECARS]);
  });

  test("the element follows the endpoint: to another interface, another node, and when it comes later", () => {
    const [one, two] = [clusterOf({ a: "1" }), clusterOf({ a: "2" })];
    const compiler = compilerOf(one, "a", "b");
    compiler.update(changesBetween(one, two));
    expect(sidecarsIn(compiler)).toEqual([interfaceOf("2")]);

    const elsewhere = clusterOf({ a: "2" }, "there");
    compiler.update(changesBetween(two, elsewhere));
    expect(sidecarsIn(compiler)).toEqual([]);

    const later = clusterOf({ b: "3" });
    compiler.update(changesBetween(elsewhere, later));
    expect(sidecarsIn(compiler)).toEqual([interfaceOf("3")]);

    compiler.update(changesBetween(later, NO_RESOURCES));
    expect(sidecarsIn(compiler)).toEqual([]);
  });

  test("an interface that two endpoints claim has the sidecar of the first only", () => {
    const cluster = clusterOf({ a: "1", b: "1" });

    expect(sidecarsIn(compilerOf(cluster, "b"))).toEqual([]);
    expect(sidecarsIn(compilerOf(cluster, "a"))).toEqual([interfaceOf("1")]);
  });

  test("interfaces of the former agent's set stay until they are left out, as far as their endpoints are of its pods", () => {
    const compiler = new PolicyCompiler({ node: "here" });
    const interfaces = new Set(["1", "2", "9"].map(interfaceOf));
    compiler.setSidecars({ endpoints: new Set(), recovered: { interfaces, pods: new Set(["a-1"]) } });
    expect(sidecarsIn(compiler)).toEqual([]);

    const cluster = clusterOf({ a: "1", b: "2" });
    compiler.update(changesBetween(NO_RESOURCES, cluster));
    expect(sidecarsIn(compiler)).toEqual([interfaceOf("1")]);

    compiler.update(changesBetween(cluster, clusterOf({ a: "1", b: "2" }, "here", 2)));
    expect(sidecarsIn(compiler)).toEqual([]);

    compiler.setSidecars({ endpoints: new Set([keyOf("b")]) });
    expect(sidecarsIn(compiler)).toEqual([interfaceOf("2")]);
  });

  test("a pod that replaced one of the same name while no agent was there does not inherit its interface in the set", () => {
    const compiler = new PolicyCompiler({ node: "here" });
    const recovered = { interfaces: new Set([interfaceOf("1")]), pods: new Set(["a-1"]) };
    compiler.setSidecars({ endpoints: new Set(), recovered });
    compiler.update(changesBetween(NO_RESOURCES, clusterOf({ a: "1" }, "here", 2)));

    expect(sidecarsIn(compiler)).toEqual([]);
  });
});
