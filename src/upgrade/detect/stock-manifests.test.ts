import { expect, test } from "bun:test";
import { objectTable } from "../../../test/support/object-table.ts";
import { type StockVariant, stockManifest } from "../published/stock-manifest.ts";
import { detectFacts } from "./detect.ts";

const VARIANTS: readonly StockVariant[] = [
  { datastore: "kubernetes", network: "own" },
  { datastore: "kubernetes", network: "other" },
  { datastore: "kubernetes", network: "fabric" },
  { datastore: "etcd", network: "own" },
  { datastore: "etcd", network: "other" },
];
const ALL = ["v3.15.0", "v3.22.1", "v3.26.4", "v3.28.2"].flatMap((version) =>
  VARIANTS.map((variant) => ({ version, ...variant })),
);

test.each(ALL)(
  "$version, $network with $datastore is detected by its published manifest",
  async ({ version, ...variant }) => {
    const items = (await stockManifest(version, variant)) ?? [];
    const metadata = { name: "clusterinformations.crd.vendor.org" };
    const definition = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata };
    const { objects } = objectTable(
      [...items.map((item) => JSON.parse(JSON.stringify(item))), ...(variant.datastore === "etcd" ? [] : [definition])],
      { "/version": { gitVersion: "v1.34.0" } },
    );
    const detection = await detectFacts(objects, { target: "v3.29.0", ignoredGroups: [] });
    expect(detection).toMatchObject({
      kind: "found",
      facts: { method: { kind: "manifest", network: variant.network }, datastore: variant.datastore },
    });
  },
);
