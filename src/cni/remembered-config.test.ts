import { describe, expect, test } from "bun:test";
import { rememberConfigs } from "./remembered-config.ts";

function counting() {
  let count = 0;
  const decode = rememberConfigs((config, version) => {
    count += 1;
    if (config["mtu"] === "bad") throw new RangeError("bad");
    return { mtu: config["mtu"], version, list: [1] };
  });
  return { decode, count: () => count };
}

describe("rememberConfigs()", () => {
  test("decodes a config once, whichever container's result it bears", () => {
    const { decode, count } = counting();
    const first = decode({ name: "a", mtu: 1 }, "1.0.0");
    expect(decode({ name: "a", mtu: 1, prevResult: { ips: [] } }, "1.0.0")).toBe(first);
    expect(count()).toBe(1);
  });

  test("decodes anew what changed under the same name, and what is read as another version", () => {
    const { decode } = counting();
    expect(decode({ name: "a", mtu: 1 }, "1.0.0").mtu).toBe(1);
    expect(decode({ name: "a", mtu: 2 }, "1.0.0").mtu).toBe(2);
    expect(decode({ name: "a", mtu: 2, runtimeConfig: { mtu: 3 } }, "1.0.0").mtu).toBe(2);
    expect(decode({ name: "a", mtu: 2 }, "0.4.0").version).toBe("0.4.0");
    expect(decode({ name: "a", mtu: 1 }, "1.0.0").mtu).toBe(1);
  });

  test("what calls share cannot be changed by one of them", () => {
    const { list } = counting().decode({}, "1.0.0");
    expect(() => list.push(2)).toThrow(TypeError);
  });

  test("throws for a bad config each time", () => {
    const { decode, count } = counting();
    for (let times = 0; times < 2; times += 1) expect(() => decode({ mtu: "bad" }, "1.0.0")).toThrow(RangeError);
    expect(count()).toBe(2);
  });

  test("forgets those that were not asked for the longest, and what is very long", () => {
    const { decode, count } = counting();
    for (let mtu = 0; mtu < 16; mtu += 1) decode({ mtu }, "1.0.0");
    decode({ mtu: 0 }, "1.0.0");
    expect(count()).toBe(16);
    decode({ mtu: 16 }, "1.0.0");
    decode({ mtu: 0 }, "1.0.0");
    expect(count()).toBe(17);
    decode({ mtu: 1 }, "1.0.0");
    expect(count()).toBe(18);

    for (let times = 0; times < 2; times += 1) decode({ name: "x".repeat(100_000) }, "1.0.0");
    expect(count()).toBe(20);
  });
});
