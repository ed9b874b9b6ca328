import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { API_VERSION, OPERATOR_API } from "../../identity.ts";
import { PUBLIC_KINDS, publicKind } from "../../model/kinds.ts";
import { defineResource } from "../../model/resource.ts";
import { ResourcePrinter } from "../get/print.ts";
import type { Given } from "../main/command.ts";
import { KIND_WORDS } from "../resources/options.ts";
import type { AdminKind } from "./kind.ts";
import { ADMIN_KINDS } from "./kinds.ts";

/** The required fields of a resource, by kind. */
const SMALLEST: Readonly<Record<string, object>> = {
  IPPool: { cidr: "10.0.0.0/16" },
  IPAddressList: { addresses: ["10.0.0.1"] },
  HostEndpoint: { node: "n", interfaceName: "*" },
  ContainerLabels: { network: "pods", labels: { tier: "a" } },
};

describe("ADMIN_KINDS", () => {
  test("has a row for each public kind, in the same order", () => {
    expect(ADMIN_KINDS.map(({ kind }) => kind)).toEqual(PUBLIC_KINDS.map(({ kind }) => kind));
  });

  test("has the words that completion offers", () => {
    expect(KIND_WORDS).toEqual(ADMIN_KINDS.map(({ kind }) => kind.toLowerCase()));
  });

  test.each(ADMIN_KINDS.map((row) => [row.kind, row] as const))(
    "%s: every column accepts a minimal resource",
    (_, row) => {
      const { codec, columns } = row;
      const document = { kind: row.kind, metadata: { name: "default" }, spec: SMALLEST[row.kind] ?? {} };
      const resource = codec.readObject(document, "key");

      expect(columns.map((column) => typeof column.cell(resource))).toEqual(columns.map(() => "string"));
    },
  );
});

const NOTHING_GIVEN: Given = { operands: [], switches: new Set(), values: new Map(), lists: new Map() };

describe("ResourcePrinter", () => {
  const codec = defineResource({
    kind: "Sample",
    api: OPERATOR_API,
    namespaced: false,
    spec: v.object({}),
    complete: (spec) => spec,
  });
  const sample: AdminKind = { ...publicKind(codec, "samples", []), columns: [] };
  const pool = ADMIN_KINDS.find(({ kind }) => kind === "IPPool");
  const PAPER = { env: {}, isTerminal: false, terminalWidth: undefined, now: () => new Date() };
  const asJson = (kinds: readonly AdminKind[]): unknown =>
    JSON.parse(
      new ResourcePrinter({ kind: "json" }, NOTHING_GIVEN, PAPER).list({
        kinds,
        found: [],
        isSingle: false,
      }),
    );

  test.each([
    ["the product's", pool ? [pool] : [], API_VERSION],
    ["another", [sample], "operator.vendor.io/v1"],
    ["more than one", pool ? [pool, sample] : [], "v1"],
  ])("gives a list of kinds of %s API group its version", (_, kinds, apiVersion) => {
    expect(asJson(kinds)).toEqual({ apiVersion, kind: "List", items: [] });
  });
});
