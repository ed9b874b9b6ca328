import { describe, expect, test } from "bun:test";
import { liveObject } from "../../test/support/followed-snapshot.ts";
import { NETWORK_FIELD } from "../model/installation/names.ts";
import { completeInstallation } from "../release/installation/complete.ts";
import { datastoreOf, datastoreProblem, installedOf } from "./declared.ts";

const installation = (spec: object, computed?: object) =>
  liveObject("Installation", "default", { spec, ...(computed === undefined ? {} : { status: { computed } }) });
const ETCD = { type: "Etcd", etcd: { endpoints: ["http://a:2379"], secretName: "tls" } };

describe("datastoreOf()", () => {
  test("merges the overlay as the rest is merged", () => {
    const overlay = installation({ datastore: { etcd: { endpoints: ["http://b:2379"] } } });

    expect(datastoreOf({ default: installation({ datastore: ETCD }), overlay })).toEqual({
      type: "Etcd",
      endpoints: "http://b:2379",
      secretName: "tls",
    });
    const discovered = { type: "Etcd", etcd: { discoverySrv: "example.org" } };
    expect(datastoreOf({ default: installation({ datastore: discovered }) })).toEqual({
      type: "Etcd",
      endpoints: "",
      discoveryDomain: "example.org",
    });
    expect(datastoreOf({ default: installation({}) })).toEqual({ type: "Kubernetes" });
  });
});

describe("datastoreProblem()", () => {
  test("refuses another type than what was installed, whichever Installation sets it", () => {
    const base = installation({}, { datastore: { type: "Kubernetes" } });
    const overlay = installation({ datastore: ETCD });

    expect(datastoreProblem({ default: base })).toBeUndefined();
    expect(datastoreProblem({ default: installation({}), overlay })).toBeUndefined();
    expect(datastoreProblem({ default: base, overlay })).toMatchObject({
      path: "spec.datastore.type",
      value: "Etcd",
      message: expect.stringContaining('remove it from Installation "overlay"'),
    });
    expect(
      datastoreProblem({ default: installation({ datastore: ETCD }, { datastore: { type: "Kubernetes" } }) }),
    ).toMatchObject({ message: expect.stringContaining('set it to Kubernetes in Installation "default"') });
  });
});

describe("installedOf()", () => {
  test("prefers what was installed over what is declared now", () => {
    const computed = { registry: "mirror/", cni: { binDir: "/own/bin" }, datastore: ETCD };
    const found = installedOf({ default: installation({}, computed) });

    expect(found.map(({ default: { spec } }) => spec)).toEqual([computed, {}]);
    expect(datastoreOf(found[0] ?? expect.unreachable()).type).toBe("Etcd");
  });

  test("can be completed whatever has become of the pools", () => {
    const computed = { registry: "mirror/", [NETWORK_FIELD]: { ipv4Pools: ["deleted-pool"] } };
    const [first] = installedOf({ default: installation({}, computed) });
    const facts = { version: "1", namespace: "system", pools: [], platformPodCidrs: [] };

    expect(completeInstallation(first ?? expect.unreachable(), facts)).toMatchObject({
      installation: { image: { registry: "mirror/" } },
    });
  });
});
