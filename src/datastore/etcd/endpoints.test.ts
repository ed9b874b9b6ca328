import { describe, expect, test } from "bun:test";
import { EndpointRing, parseEndpoint } from "./endpoints.ts";

describe("parseEndpoint()", () => {
  test.each([
    ["http://127.0.0.1:2379", { url: "http://127.0.0.1:2379", user: undefined }],
    ["https://etcd.example:2379/", { url: "https://etcd.example:2379", user: undefined }],
    ["http://[::1]:2379", { url: "http://[::1]:2379", user: undefined }],
    ["http://root:p%40ss%3A@host:1", { url: "http://host:1", user: { name: "root", password: "p@ss:" } }],
  ])("reads %s", (text, endpoint) => {
    expect(parseEndpoint(text)).toEqual(endpoint);
  });

  test.each(["127.0.0.1:2379", "ftp://host", "", "http://"])("refuses %j", (text) => {
    expect(() => parseEndpoint(text)).toThrow(expect.objectContaining({ kind: "config-invalid" }));
  });
});

describe("EndpointRing", () => {
  const [a, b, c] = ["http://a", "http://b", "http://c"].map(parseEndpoint);
  if (!a || !b || !c) throw new Error("three endpoints are needed");

  test("stays with an endpoint until it fails", () => {
    const ring = new EndpointRing([a, b, c], 1);

    expect([ring.current, ring.current]).toEqual([b, b]);
    expect(ring.giveUp(b)).toBe("another");
    expect(ring.current).toBe(c);
  });

  test("skips failed endpoints until all have failed", () => {
    const ring = new EndpointRing([a, b, c]);
    ring.giveUp(a);
    ring.giveUp(b);

    expect(ring.current).toBe(c);
    expect(ring.giveUp(c)).toBe("round over");
    expect(ring.current).toBe(a);
  });

  test("does not move on twice when two requests fail at the same endpoint", () => {
    const ring = new EndpointRing([a, b, c]);
    ring.giveUp(a);
    ring.giveUp(a);

    expect(ring.current).toBe(b);
  });

  test("keeps a single endpoint", () => {
    const ring = new EndpointRing([a]);

    expect(ring.giveUp(a)).toBe("round over");
    expect(ring.current).toBe(a);
  });

  test("refuses to be empty", () => {
    expect(() => new EndpointRing([])).toThrow(expect.objectContaining({ kind: "config-invalid" }));
  });
});
