import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { isObject } from "../../model/shape.ts";
import { parseJsonText } from "../merge/json-text.ts";
import { type StockVariant, stockManifest } from "./stock-manifest.ts";

const VERSIONS = ["v3.15.0", "v3.22.1", "v3.26.4", "v3.28.2"];
const VARIANTS: readonly StockVariant[] = [
  { datastore: "kubernetes", network: "own" },
  { datastore: "kubernetes", network: "other" },
  { datastore: "kubernetes", network: "fabric" },
  { datastore: "etcd", network: "own" },
  { datastore: "etcd", network: "other" },
];
const ALL = VERSIONS.flatMap((version) => VARIANTS.map((variant) => ({ version, ...variant })));

describe("stockManifest()", () => {
  test.each(ALL)("has $version, $network with $datastore", async ({ version, ...variant }) => {
    const objects = (await stockManifest(version, variant)) ?? [];
    const kinds = objects.map(({ kind }) => kind);

    expect(kinds.filter((kind) => kind === "DaemonSet")).toHaveLength(1);
    expect(kinds).toContain("ClusterRole");
    expect(JSON.stringify(objects)).not.toMatch(/\((product|PREFIX|apiGroup)\)/);
    expect(JSON.stringify(objects)).toContain(`${identity.product}/node:${version.split(".").slice(0, 2).join(".")}.`);
    for (const { metadata } of objects) expect(metadata.name).toBeString();
    const texts = objects.flatMap(({ data }) => (isObject(data) ? (data["cni_network_config"] ?? []) : []));
    expect(texts.map(parseJsonText)).toEqual([expect.objectContaining({ plugins: expect.any(Array) })]);
  });

  test("does not have other releases", async () => {
    expect(await stockManifest("v3.27.1", { datastore: "kubernetes", network: "own" })).toBeUndefined();
    expect(await stockManifest("v3.26.1", { datastore: "etcd", network: "fabric" })).toBeUndefined();
  });
});
