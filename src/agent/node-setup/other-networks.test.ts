import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { hidingConfigs, isFormerConfig, namesBefore, ownConfigs } from "./other-networks.ts";

describe("namesBefore()", () => {
  test("returns the network configs that runtimes read before ours", () => {
    const names = ["05-a.conf", "00-b.conflist", "10-own.conflist", "10-other.conflist", "20-c.conf", "01-notes.txt"];

    expect(namesBefore("10-own.conflist", names)).toEqual(["00-b.conflist", "05-a.conf", "10-other.conflist"]);
  });
});

describe("hidingConfigs()", () => {
  test("names the file, its plugins and the remedy", () => {
    const files = [
      { name: "05-a.conf", text: '{"type":"ptp"}' },
      { name: "06-b.conflist", text: '{"plugins":[{"type":"bridge"},{"type":"portmap"}]}' },
      { name: "07-c.conf", text: "{" },
    ];
    const messages = hidingConfigs("/etc/cni/net.d", "/etc/cni/net.d/10-own.conflist", files);

    expect(messages.map((message) => message.split(" comes before ")[0])).toEqual([
      '"/etc/cni/net.d/05-a.conf" (ptp)',
      '"/etc/cni/net.d/06-b.conflist" (bridge, portmap)',
      '"/etc/cni/net.d/07-c.conf" (not valid JSON)',
    ]);
    expect(messages[0]).toContain("remove or rename it");
  });
});

describe("ownConfigs()", () => {
  test("returns the network configs that run our plugin or our IPAM plugin", () => {
    const files = [
      { name: "30-list.conflist", text: `{"plugins":[{"type":"${identity.product}"},{"type":"portmap"}]}` },
      { name: "20-bridge.conf", text: `{"type":"bridge","ipam":{"type":"${identity.ipamType}"}}` },
      { name: "10-flannel.conf", text: `{"type":"flannel","delegate":{"type":"${identity.product}"}}` },
      { name: "40-other.conflist", text: '{"plugins":[{"type":"bridge"},{"type":"portmap"}]}' },
      { name: "50-damaged.conf", text: "{" },
      { name: "kept.conf.former", text: `{"type":"${identity.product}"}` },
    ];

    expect(ownConfigs(files)).toEqual(["10-flannel.conf", "20-bridge.conf", "30-list.conflist"]);
  });
});

describe("isFormerConfig()", () => {
  const NAME = "10-canal.conflist";
  const file = (...plugins: readonly object[]) => ({ name: NAME, text: JSON.stringify({ plugins }) });

  test.each([
    [true, file({ type: identity.product }, { type: "portmap" })],
    [true, file({ type: "flannel", delegate: { type: identity.product } })],
    [true, { name: NAME, text: JSON.stringify({ type: identity.product }) }],
    [false, { ...file({ type: identity.product }), name: "05-mine.conflist" }],
    [false, file({ type: "flannel", delegate: { type: "bridge" } })],
    [false, { name: NAME, text: "{" }],
  ])("is %p for %j", (expected, config) => {
    expect(isFormerConfig(config, NAME)).toBe(expected);
  });
});
