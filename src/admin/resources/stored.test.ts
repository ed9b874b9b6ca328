import { describe, expect, test } from "bun:test";
import { API_VERSION } from "../../identity.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import { DecodedOnce } from "./stored.ts";

describe("DecodedOnce", () => {
  test("decodes a resource again only after it has changed", () => {
    const kind = ADMIN_KINDS.find((row) => row.kind === "Node");
    if (!kind) throw new Error("no kind");
    const { decode } = new DecodedOnce();
    const text = (label: string) =>
      JSON.stringify({ apiVersion: API_VERSION, kind: "Node", metadata: { name: "n", labels: { label } }, spec: {} });
    const entry = { key: kind.key({ name: "n" }), value: text("a"), revision: "1" };
    const first = decode(kind, entry);

    expect(decode(kind, { ...entry })).toBe(first);
    expect(decode(kind, { ...entry, revision: "2" }).resource.metadata.resourceVersion).toBe("2");
    // The same revision with another text, as after a write that was only tried.
    expect(decode(kind, { ...entry, revision: "2", value: text("b") }).resource.metadata.labels).toEqual({
      label: "b",
    });
  });
});
