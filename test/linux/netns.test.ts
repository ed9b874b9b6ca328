import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  closeNetns,
  isNetnsAtPath,
  isOwnNetns,
  isSameNetns,
  keepHome,
  type Netns,
  openNetns,
  runInNetns,
} from "../../src/linux/netns.ts";
import { readSysctl, writeSysctl } from "../../src/linux/sysctl.ts";
import { requireNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { thrownBy } from "../support/thrown-by.ts";

const area = new NetnsArea("netns");
const why = canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)";

describe.skipIf(!canMakeNetns)(`network namespaces${why}`, () => {
  let place: TestNetns;
  let netns: Netns;

  beforeAll(() => {
    area.sweep();
    place = area.create();
    netns = requireNetns(place.path);
  });
  afterAll(() => {
    closeNetns(netns);
    area.sweep();
  });

  test("run work inside, and the thread leaves them afterwards", () => {
    const inside = runInNetns(netns, () => isOwnNetns(place.path));
    expect(inside).toBe(true);
    expect(isOwnNetns(place.path)).toBe(false);
  });

  test("are left when the work throws, and its error is passed on", () => {
    const fault = new RangeError("inside");
    expect(() =>
      runInNetns(netns, () => {
        expect(isOwnNetns(place.path)).toBe(true);
        throw fault;
      }),
    ).toThrow(fault);
    expect(isOwnNetns(place.path)).toBe(false);
  });

  test("that were recorded as home are recognised by path, and whether the thread is there", () => {
    const home = keepHome();
    expect(["/proc/self/ns/net", place.path, "/run/netns/vt-none"].map(home.isNamedBy)).toEqual([true, false, false]);
    expect(runInNetns(netns, () => home.isHere())).toBe(false);
    expect(() =>
      runInNetns(netns, () => {
        throw new RangeError("inside");
      }),
    ).toThrow(RangeError);
    expect(home.isHere()).toBe(true);
  });

  test("refuse asynchronous work by its type", () => {
    // @ts-expect-error: a promise would continue outside.
    const unused = () => runInNetns(netns, async () => 1);
    expect(unused).toBeFunction();
  });

  test("are undefined for a missing path, and a plain file cannot be entered", () => {
    expect(openNetns("/run/netns/vt-none")).toBeUndefined();
    const plain = openNetns("/proc/version");
    if (plain === undefined) throw new Error("expected the file to open");
    expect(thrownBy(() => runInNetns(plain, () => 1)).kind).toBe("netns-invalid");
    closeNetns(plain);
  });

  test("are recognised as the same by two paths", () => {
    expect(isSameNetns("/proc/self/ns/net", "/proc/thread-self/ns/net")).toBe(true);
    expect(isSameNetns("/proc/self/ns/net", place.path)).toBe(false);
    expect(isSameNetns("/run/netns/vt-none", "/run/netns/vt-none")).toBe(false);
  });

  test("are at their path until it is removed, also if another has the path then", () => {
    const removed = area.create();
    const opened = requireNetns(removed.path);
    expect(isNetnsAtPath(opened)).toBe(true);
    area.delete(removed);
    expect(isNetnsAtPath(opened)).toBe(false);
    Bun.spawnSync(["ip", "netns", "add", removed.name]);
    expect(isNetnsAtPath(requireNetns(removed.path))).toBe(true);
    expect(isNetnsAtPath(opened)).toBe(false);
    closeNetns(opened);
  });

  test("have their own settings", () => {
    const name = "net/ipv4/conf/lo/proxy_arp";
    expect(runInNetns(netns, () => writeSysctl(name, "1"))).toBe("written");
    expect(runInNetns(netns, () => readSysctl(name))).toBe("1");
    expect(runIn(place, ["cat", `/proc/sys/${name}`]).trim()).toBe("1");
    expect(readSysctl(name)).toBe("0");
  });

  test("report a setting that the kernel does not have as absent, and one that it refuses as an error", () => {
    const missing = "net/ipv4/conf/nowhere/proxy_arp";
    expect(runInNetns(netns, () => [readSysctl(missing), writeSysctl(missing, "1")])).toEqual([undefined, "absent"]);
    const refused = () => runInNetns(netns, () => writeSysctl("net/ipv4/conf/lo/proxy_arp", "many"));
    expect(thrownBy(refused).kind).toBe("kernel-refused");
    expect(thrownBy(() => readSysctl("net/../kernel/hostname")).kind).toBe("internal");
  });
});
