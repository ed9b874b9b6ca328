import { describe, expect, test } from "bun:test";
import { API_VERSION, identity } from "../../../identity.ts";
import type { Fields } from "../../../kube/objects.ts";
import { FORMER_UID } from "../../former-names.ts";
import { brokenGroups, resourcesIn } from "../../owned-objects/api-resources.ts";
import { managersOf, ownedObjectsIn, pathOf } from "../../owned-objects/owned-object.ts";
import { decideRestoration, presentNames, reversedUid } from "./restoration.ts";

const RESOURCE = {
  group: "",
  apiVersion: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  isNamespaced: true,
  root: "/api/v1",
};
const OLD = "00112233-4455-4677-8899-aabbccddeeff";
const NEW = "10112233-4455-4677-8899-aabbccddeeff";
const OTHER = "20112233-4455-4677-8899-aabbccddeeff";
const reference = { apiVersion: API_VERSION, kind: "NetworkPolicy", name: "web", uid: OLD, controller: true };
const deployment = { apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: OTHER };

describe("resourcesIn()", () => {
  test("leaves out what cannot be listed or changed, subresources and events", () => {
    const verbs = ["list", "patch"];
    const resources = [
      { name: "pods", kind: "Pod", namespaced: true, verbs },
      { name: "pods/status", kind: "Pod", namespaced: true, verbs },
      { name: "events", kind: "Event", namespaced: true, verbs },
      { name: "componentstatuses", kind: "ComponentStatus", verbs: ["get", "list"] },
    ];

    const found = resourcesIn({ resources }, { group: "", apiVersion: "v1", root: "/api/v1" });

    expect(found.map(({ plural }) => plural)).toEqual(["pods"]);
  });
});

describe("brokenGroups()", () => {
  test("finds aggregated APIs that are not available, and not those of the API server itself", () => {
    const service = (name: string, spec: object, status: object) => ({ metadata: { name }, spec, status });
    const down = { conditions: [{ type: "Available", status: "False", message: "no response" }] };
    const up = { conditions: [{ type: "Available", status: "True" }] };

    const broken = brokenGroups([
      service("v1.apps", { group: "apps" }, {}),
      service("v1.up.example", { group: "up.example", service: {} }, up),
      service("v1.down.example", { group: "down.example", service: {} }, down),
      service("v1.new.example", { group: "new.example", service: {} }, {}),
    ]);

    expect(broken.map(({ group }) => group)).toEqual(["down.example", "new.example"]);
    expect(broken[0]?.reason).toContain("no response");
  });
});

describe("ownedObjectsIn()", () => {
  test("finds references to any version of the group, among others", () => {
    const later = { ...reference, apiVersion: `${identity.apiGroup}/v4`, uid: NEW };
    const metadata = { name: "a", namespace: "shop", uid: "u", ownerReferences: [reference, deployment, later] };

    const [found] = ownedObjectsIn(RESOURCE, [{ metadata }, { metadata: { name: "free", uid: "f" } }]);

    expect(found).toMatchObject({
      kind: "ConfigMap",
      namespace: "shop",
      positions: [0, 2],
      references: [reference, later],
    });
  });

  test("leaves out objects that are being deleted", () => {
    const metadata = { name: "a", uid: "u", deletionTimestamp: "2026-01-01T00:00:00Z", ownerReferences: [reference] };

    expect(ownedObjectsIn(RESOURCE, [{ metadata }])).toEqual([]);
  });
});

describe("managersOf()", () => {
  test("names the programs that have set the reference", () => {
    const owning = (uid: string) => ({ "f:metadata": { "f:ownerReferences": { [`k:{"uid":"${uid}"}`]: {} } } });
    const managedFields = [
      { manager: "kubectl", fieldsV1: { "f:data": {} } },
      { manager: "shop-controller", fieldsV1: owning(OLD) },
      { manager: "deployments", fieldsV1: owning(OTHER) },
    ];

    expect(managersOf(managedFields, [reference])).toEqual(["shop-controller"]);
    expect(managersOf(undefined, [reference])).toEqual([]);
  });
});

describe("decideRestoration()", () => {
  const was = { reference, uid: "u" };
  const dependant = (...ownerReferences: readonly object[]): Fields => ({
    uid: "u",
    resourceVersion: "7",
    ownerReferences,
  });
  const moved = { kind: "NetworkPolicy", name: "web", metadata: { uid: NEW, annotations: { [FORMER_UID]: OLD } } };
  const wanted = { ...reference, uid: NEW };

  test("adds the reference with the new UID of the moved owner, if nothing has changed since", () => {
    const restoration = decideRestoration(was, { uid: "u", resourceVersion: "7" }, moved);

    expect(restoration).toEqual({
      kind: "add",
      operations: [
        { op: "test", path: "/metadata/resourceVersion", value: "7" },
        { op: "add", path: "/metadata/ownerReferences", value: [wanted] },
      ],
    });
  });

  test.each([
    ["beside other owners", dependant(deployment), { op: "add", path: "/metadata/ownerReferences/-", value: wanted }],
    [
      "in place of one that has appeared again",
      dependant(deployment, reference),
      { op: "replace", path: "/metadata/ownerReferences/1", value: wanted },
    ],
  ])("adds it %s", (_, metadata, operation) => {
    expect(decideRestoration(was, metadata, moved)).toMatchObject({ operations: [{}, operation] });
  });

  test("is done if the new reference is there", () => {
    expect(decideRestoration(was, dependant(wanted), moved)).toEqual({ kind: "present" });
  });

  test("knows an owner whose UID was shown with reversed bits", () => {
    const reversed = { ...reference, uid: reversedUid(OLD) };

    expect(decideRestoration({ reference: reversed, uid: "u" }, dependant(), moved).kind).toBe("add");
    expect(reversedUid(reversedUid(OLD))).toBe(OLD);
    expect(reversedUid("80000000-0000-4000-8000-000000000001")).toBe("01000000-0000-4000-8000-000000000080");
  });

  test("the name and the kind may be others now", () => {
    const prefixed = { ...moved, name: "default.web" };

    expect(decideRestoration(was, dependant(), prefixed)).toMatchObject({
      operations: [{}, { value: [{ name: "default.web" }] }],
    });
  });

  test.each([
    ["the dependant is gone", undefined, moved],
    ["the dependant was created again", { ...dependant(), uid: "another" }, moved],
    ["the owner is gone", dependant(), undefined],
    ["the owner was created again", dependant(), { ...moved, metadata: { uid: NEW } }],
    ["another controller owns it", dependant({ ...deployment, controller: true }), moved],
  ])("is reported, not done, if %s", (_, metadata, owner) => {
    expect(decideRestoration(was, metadata, owner).kind).toBe("report");
  });
});

describe("presentNames()", () => {
  test("policies are looked for with and without their tier, settings of the agent under both kinds", () => {
    expect(presentNames({ kind: "NetworkPolicy", name: "web" }).map(({ name }) => name)).toEqual([
      "web",
      "default.web",
    ]);
    expect(presentNames({ kind: "GlobalNetworkPolicy", name: "default.a" }).map(({ name }) => name)).toEqual([
      "default.a",
      "a",
    ]);
    expect(presentNames({ kind: "FelixConfiguration", name: "default" }).map(({ kind }) => kind)).toEqual([
      "NodeAgentConfiguration",
      "FelixConfiguration",
    ]);
    expect(presentNames({ kind: "IPPool", name: "p" })).toEqual([{ kind: "IPPool", name: "p" }]);
  });
});

describe("pathOf()", () => {
  test("is that of the API", () => {
    expect(pathOf({ ...RESOURCE, namespace: "shop", name: "a" })).toBe("/api/v1/namespaces/shop/configmaps/a");
    expect(pathOf({ apiVersion: "apps/v1", plural: "deployments", name: "a" })).toBe("/apis/apps/v1/deployments/a");
  });
});
