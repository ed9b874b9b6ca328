import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { unmanagedLinkEntries } from "./unmanaged-links.ts";

const { product, interfacePrefix, vxlanDevice, vxlanDeviceIpv6 } = identity;

describe("unmanagedLinkEntries()", () => {
  test("has a file for each program whose directory exists", () => {
    expect(unmanagedLinkEntries([])).toEqual([]);
    expect(unmanagedLinkEntries(["/etc/systemd/network"]).map(({ path }) => path)).toEqual([
      `/etc/systemd/network/10-${product}.network`,
    ]);
  });

  test("names the links of pods and tunnels", () => {
    const entries = unmanagedLinkEntries(["/etc/NetworkManager/conf.d", "/etc/systemd/network"]);
    const [manager = "", networkd = ""] = entries.map(({ placed }) => (placed.kind === "text" ? placed.text : ""));

    expect(manager).toContain(
      `[keyfile]\nunmanaged-devices+=interface-name:${interfacePrefix}*;interface-name:${vxlanDevice};interface-name:${vxlanDeviceIpv6};`,
    );
    expect(networkd).toContain(`Name=${interfacePrefix}* ${vxlanDevice} ${vxlanDeviceIpv6} `);
    expect(networkd).toContain("[Link]\nUnmanaged=yes\n");
  });
});
