import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import type { KubeRequest } from "./api.ts";
import { isForbidden, requireOk } from "./require-ok.ts";

const POD = "/api/v1/namespaces/shop/pods/web-0";

describe("requireOk()", () => {
  test("returns the text of a success", () => {
    expect(requireOk({ status: 201, text: "{}" }, { method: "POST", path: POD })).toBe("{}");
  });

  test.each<[KubeRequest["method"], string, Readonly<Record<string, string>>, string, string]>([
    ["GET", POD, {}, "get pods", '{apiGroups: [""], resources: ["pods"], verbs: ["get"]}'],
    ["GET", "/api/v1/pods", {}, "list pods", '{apiGroups: [""], resources: ["pods"], verbs: ["list"]}'],
    ["GET", "/api/v1/namespaces/shop", {}, "get namespaces", 'resources: ["namespaces"], verbs: ["get"]'],
    ["GET", "/api/v1/namespaces/shop/pods", {}, "list pods", 'verbs: ["list"]'],
    ["GET", "/api/v1/nodes", { watch: "1" }, "watch nodes", 'verbs: ["watch"]'],
    ["PATCH", `${POD}/status`, {}, "patch pods/status", 'resources: ["pods/status"], verbs: ["patch"]'],
    ["POST", "/apis/vendor.org/v3/ipamblocks", {}, "create ipamblocks", 'apiGroups: ["vendor.org"]'],
    ["PUT", "/apis/vendor.org/v3/ipamblocks/b", {}, "update ipamblocks", 'verbs: ["update"]'],
    ["DELETE", "/apis/vendor.org/v3/ipamblocks/b", {}, "delete ipamblocks", 'verbs: ["delete"]'],
  ])("a 403 names the permission and the rule: %s %s %p", (method, path, query, permission, rule) => {
    const failure = thrownBy(() => requireOk({ status: 403, text: '{"message":"said no"}' }, { method, path, query }));
    expect(failure).toMatchObject({ kind: "api-unavailable" });
    expect(failure.message).toContain(`the role lacks the permission to ${permission}`);
    expect(failure.message).toContain("said no");
    expect(failure.details).toContain(rule);
  });

  test("a 403 of an admission policy names the policy and its reason, and not the role", () => {
    const why = 'this account, with a token of node "new", may write claims of its own node only';
    const message = `blockaffinities.vendor.org "old-10" is forbidden: ValidatingAdmissionPolicy 'vendor-node-claims' with binding 'vendor-node-claims' denied request: ${why}`;
    const refusal = { status: 403, text: JSON.stringify({ kind: "Status", message }) };
    const request = { method: "DELETE", path: "/apis/vendor.org/v3/blockaffinities/old-10" } as const;
    const failure = thrownBy(() => requireOk(refusal, request));

    expect(failure.message).toBe(
      `Cannot delete blockaffinities "old-10": the admission policy "vendor-node-claims" refuses it: ${why} (403 Forbidden)`,
    );
    expect(failure.details).toContain("If this host was renamed, delete the Node of its former name");
    expect(failure.details).not.toContain("role");
    expect(isForbidden(failure)).toBeTrue();

    const text = refusal.text.replaceAll("vendor-node-claims", "no-deletions");
    const foreign = thrownBy(() => requireOk({ status: 403, text }, request));
    expect(foreign.details).toBe('see "kubectl describe validatingadmissionpolicy no-deletions"');
  });

  test("names the object", () => {
    const failure = thrownBy(() => requireOk({ status: 404, text: "" }, { method: "GET", path: POD }));
    expect(failure.message).toStartWith('Cannot get pods "shop/web-0": ');
  });

  test.each([
    [404, "resource-missing"],
    [409, "resource-changed"],
    [413, "record-too-large"],
    [422, "resource-invalid"],
    [410, "api-unavailable"],
    [500, "api-unavailable"],
  ] as const)("status %d is %s", (status, kind) => {
    expect(thrownBy(() => requireOk({ status, text: "no" }, { method: "GET", path: POD }))).toMatchObject({ kind });
  });

  test("a resource whose definition is not applied is not an object that is missing", () => {
    const text = "404 page not found\n";
    const list = { method: "GET", path: "/apis/vendor.org/v3/ippools" } as const;
    const failure = thrownBy(() => requireOk({ status: 404, text }, list, "datastore-unavailable"));
    expect(failure.kind).toBe("datastore-unavailable");
    expect(failure.message).toBe(
      'Cannot list ippools: the API does not know ippools of group "vendor.org" (404 Not Found)',
    );
    expect(failure.details).toContain("deploy/crds");

    const missing = { status: 404, text: '{"kind":"Status","message":"ippools \\"blue\\" not found"}' };
    const one = { method: "GET", path: "/apis/vendor.org/v3/ippools/blue" } as const;
    expect(thrownBy(() => requireOk(missing, one)).kind).toBe("resource-missing");
  });

  test("a datastore has its own kind for an API that cannot be used", () => {
    const refused = { status: 401, text: "" };
    const failure = thrownBy(() => requireOk(refused, { method: "GET", path: POD }, "datastore-unavailable"));
    expect(failure).toMatchObject({ kind: "datastore-unavailable" });
  });

  test("secrets in the server's message are removed", () => {
    const text = JSON.stringify({ message: 'invalid header "Authorization: Bearer hidden-word-1"' });
    const failure = thrownBy(() => requireOk({ status: 400, text }, { method: "GET", path: POD }));
    expect(failure.message).not.toContain("hidden-word");
  });
});
