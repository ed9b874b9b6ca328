import { expect, test } from "bun:test";
import { join } from "node:path";
import { STEPS } from "./steps.ts";

/** The order of the whole upgrade; rows are added where they stand here. */
const ORDER = [
  "network-config",
  "owner-references",
  "release-ownership",
  "definitions",
  "storage",
  "address-list",
  "chart",
  "operator",
  "manifest",
  "rollout",
  "unlock",
  "restore-owner-references",
  "remaining-nodes",
  "all-pods",
  "cluster-version",
  "former-objects",
  "operator-status",
  "release-secrets",
  "sidecars",
  "upgrade-policy",
  "host-endpoints",
];

test("the steps are in the order that each of them relies on", () => {
  const names = STEPS.map(({ name }) => name);
  expect(names).toEqual(ORDER.filter((name) => names.includes(name)));
});

test("a release that moves to the operator's namespace has the order (a) (b) (c) (d) of rule 4", () => {
  const rule4 = ["release-ownership", "definitions", "chart", "release-secrets"];

  expect(STEPS.map(({ name }) => name).filter((name) => rule4.includes(name))).toEqual(rule4);
});

test("the page about upgrades has every step", async () => {
  const page = await Bun.file(join(import.meta.dir, "../../docs/upgrade.md")).text();
  const rows = page.split("\n").filter((line) => /^\| \d/.test(line));
  const named = rows.flatMap((row) => [...(row.split("|")[2] ?? "").matchAll(/`([a-z-]+)`/g)].map(([, name]) => name));

  expect(named.sort()).toEqual(STEPS.map(({ name }) => name).sort());
});
