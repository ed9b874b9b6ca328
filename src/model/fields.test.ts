import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { packetNetworkField } from "./fields.ts";

describe("packetNetworkField", () => {
  test.each(["10.0.0.1", "10.0.0.0/8", "fd00::1", "::/0", "0.0.0.0/0"])("accepts %p", (text) => {
    expect(v.is(packetNetworkField, text)).toBe(true);
  });

  test.each([
    ["::ffff:10.0.0.1", 'use "10.0.0.1/32"'],
    ["::ffff:10.0.0.0/104", 'use "10.0.0.0/8"'],
    ["10.0.0.1/8", 'use "10.0.0.0/8"'],
    ["ten", "is neither an IP address nor a CIDR"],
  ])("refuses %p and says what to use", (text, advice) => {
    const [issue] = v.safeParse(packetNetworkField, text).issues ?? [];
    expect(issue?.message).toContain(advice);
  });
});
