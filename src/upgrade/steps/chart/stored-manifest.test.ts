import { describe, expect, test } from "bun:test";
import { packRelease, unpackRelease } from "../../helm-releases.ts";
import { stripManifest, withManifest } from "./stored-manifest.ts";

const document = (apiVersion: string, kind: string, name = "vendor-operator") =>
  `---\n# Source: chart/templates/x.yaml\napiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: ${name}\n`;
const isServed = (apiVersion: string) => apiVersion !== "policy/v1beta1";

describe("stripManifest()", () => {
  test("takes out what the API does not serve any more, and what Helm must never delete", () => {
    const kept = [
      document("v1", "ServiceAccount"),
      document("apps/v1", "Deployment"),
      document("v1", "Namespace", "other"),
    ];
    const manifest = [
      document("v1", "Namespace"),
      document("policy/v1beta1", "PodSecurityPolicy"),
      document("operator.vendor.io/v1", "APIServer", "default"),
      document("apiextensions.k8s.io/v1", "CustomResourceDefinition", "installations.operator.vendor.io"),
      ...kept,
    ].join("");

    const stripped = stripManifest(manifest, isServed);
    expect(stripped.manifest).toBe(kept.join(""));
    expect(stripped.removed.map((reason) => reason.split(":")[0])).toEqual([
      "Namespace vendor-operator",
      "PodSecurityPolicy vendor-operator",
      "APIServer default",
      "CustomResourceDefinition installations.operator.vendor.io",
    ]);
    expect(stripManifest(stripped.manifest, isServed)).toEqual({ manifest: stripped.manifest, removed: [] });
  });

  test("takes out a PodSecurityPolicy that the API serves, by which pods may be permitted", () => {
    const { removed } = stripManifest(document("policy/v1beta1", "PodSecurityPolicy"), () => true);
    expect(removed).toEqual([expect.stringContaining("pods may be permitted by it")]);
  });

  test("takes out resources of the product, which the former node agents still use", () => {
    const manifest = [
      document("crd.vendor.org/v1", "FelixConfiguration", "default"),
      document("vendor.org/v3", "IPPool", "pool"),
    ].join("");

    expect(stripManifest(manifest, isServed).removed.map((reason) => reason.split(":")[0])).toEqual([
      "FelixConfiguration default",
      "IPPool pool",
    ]);
  });
});

describe("withManifest()", () => {
  test("replaces the manifest of the record, and nothing else", () => {
    const record = { name: "net", version: 3, manifest: "old", config: { a: 1 }, chart: { templates: ["x"] } };
    expect(unpackRelease(withManifest(packRelease(record), "new"))).toEqual({ ...record, manifest: "new" });
  });
});
