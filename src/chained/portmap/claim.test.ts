import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../../test/support/thrown-by.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import { claimsOf, formatHostPort } from "./claim.ts";
import { decodePortMappings } from "./mapping.ts";
import type { PodAddresses } from "./pod-addresses.ts";

const pod = (text: string) => {
  const address = parseInterfaceAddress(text);
  if (address === undefined) throw new Error(text);
  return address;
};
const BOTH: PodAddresses = { 4: pod("10.0.0.2/24"), 6: pod("fd00::2/64") };

/** `hostPort>containerPort[@hostIP][/protocol]` */
function mappings(...texts: readonly string[]) {
  const portMappings = texts.map((text) => {
    const [, hostPort, containerPort, hostIP = "", protocol = "tcp"] =
      /^(\d+)>(\d+)(?:@([^/]+))?(?:\/(\w+))?$/.exec(text) ?? [];
    return { hostPort: Number(hostPort), containerPort: Number(containerPort), hostIP, protocol };
  });
  return decodePortMappings({ runtimeConfig: { portMappings } });
}
const claimed = (pods: PodAddresses, ...texts: readonly string[]) =>
  claimsOf(mappings(...texts), pods).claims.map((claim) => `${claim.family} ${formatHostPort(claim)}>${claim.podPort}`);

describe("claimsOf()", () => {
  test.each([
    [["80>8080"], ["4 tcp 80>8080", "6 tcp 80>8080"]],
    [["80>8080@0.0.0.0"], ["4 tcp 80>8080"]],
    [["80>8080@::"], ["6 tcp 80>8080"]],
    [["80>8080@192.0.2.1/udp"], ["4 udp 192.0.2.1:80>8080"]],
    [["80>8080@fd00::9/sctp"], ["6 sctp [fd00::9]:80>8080"]],
    [
      ["80>1@0.0.0.0", "80>1/udp"],
      ["4 tcp 80>1", "4 udp 80>1", "6 udp 80>1"],
    ],
  ])("makes of %p %p", (texts, claims) => {
    expect(claimed(BOTH, ...texts)).toEqual(claims);
  });

  test("leaves out a family the pod has no address of, and tells what is served in none", () => {
    const pods = { 4: pod("10.0.0.2/24") };
    expect(claimed(pods, "80>1")).toEqual(["4 tcp 80>1"]);
    const { unserved } = claimsOf(mappings("80>1", "81>1@fd00::1"), pods);
    expect(unserved.map(({ mapping }) => mapping.hostPort)).toEqual([81]);
    expect(claimsOf(mappings("80>1"), {})).toMatchObject({ claims: [], unserved: [{ mapping: { hostPort: 80 } }] });
  });

  test("takes the same port twice, or on one address as well as on all, as one", () => {
    const pods = { 4: pod("10.0.0.2/24") };
    expect(claimed(pods, "80>1", "80>1")).toEqual(["4 tcp 80>1"]);
    expect(claimed(pods, "80>1@192.0.2.1", "80>1", "80>1@192.0.2.2")).toEqual(["4 tcp 80>1"]);
    expect(claimed(BOTH, "80>1@192.0.2.1", "80>1@::")).toEqual(["4 tcp 192.0.2.1:80>1", "6 tcp 80>1"]);
  });

  test.each([
    ["80>1", "80>2"],
    ["80>1@192.0.2.1", "80>2"],
    ["80>1", "80>2@fd00::1"],
    ["80>1@192.0.2.1", "80>2@192.0.2.1"],
  ])("refuses %s beside %s", (left, right) => {
    expect(thrownBy(() => claimsOf(mappings(left, right), BOTH)).kind).toBe("config-invalid");
  });
});
