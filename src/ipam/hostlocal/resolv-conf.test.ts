import { describe, expect, test } from "bun:test";
import { parseResolvConf } from "./resolv-conf.ts";

const NOTHING = { nameservers: [], domain: undefined, search: [], options: [] };

describe("parseResolvConf()", () => {
  test.each([
    ["name servers", "\n  nameserver 192.0.2.0\n\tnameserver 192.0.2.1\n", { nameservers: ["192.0.2.0", "192.0.2.1"] }],
    ["no comments", "nameserver 192.0.2.0\n;nameserver 192.0.2.1\n# nameserver x\n", { nameservers: ["192.0.2.0"] }],
    ["no keyword without value", "nameserver\nsearch\n", {}],
    [
      "all fields, lists joined",
      "nameserver 192.0.2.0\r\ndomain example.com\nsearch example.net example.org\nsearch example.gov\noptions one two\noptions three",
      {
        nameservers: ["192.0.2.0"],
        domain: "example.com",
        search: ["example.net", "example.org", "example.gov"],
        options: ["one", "two", "three"],
      },
    ],
  ])("reads %s", (_, content, expected) => {
    expect(parseResolvConf(content)).toEqual({ ...NOTHING, ...expected });
  });
});
