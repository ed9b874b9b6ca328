/** Links that many callers of one process remove at the same time. The process runs inside the namespace. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";

const area = new NetnsArea("removal");
const why = canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)";
const PROCESS = join(import.meta.dir, "link-removal.process.ts");

describe.skipIf(!canMakeNetns)(`links that are removed together${why}`, () => {
  let host: TestNetns;
  let pod: TestNetns;
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());
  beforeEach(() => {
    host = area.create("host");
    pod = area.create("pod");
  });

  const makeVeths = (names: readonly string[]) => {
    const lines = names.map((name) => `link add ${name} type veth peer name ${name} netns ${pod.name}`);
    runIn(host, ["ip", "-batch", "-"], lines.join("\n"));
  };
  const namesIn = (netns: TestNetns): readonly string[] => {
    const links: readonly { ifname: string }[] = JSON.parse(runIn(netns, ["ip", "-j", "link"]));
    return links.map(({ ifname }) => ifname);
  };
  /** How many were refused. */
  const remove = (...args: readonly string[]) => Number(runIn(host, [process.execPath, PROCESS, ...args]));
  const numbered = (count: number) => Array.from({ length: count }, (_, index) => `vt${index}`);

  test("all go, with their other ends, and nobody else's does", () => {
    const removed = numbered(30);
    makeVeths([...removed, "other", "grouped"]);
    runIn(host, ["ip", "link", "set", "grouped", "group", "7"]);

    expect(remove(...removed)).toBe(0);
    expect(namesIn(host)).toEqual(["lo", "other", "grouped"]);
    expect(namesIn(pod)).toEqual(["lo", "other", "grouped"]);
  });

  test("one alone goes as well", () => {
    makeVeths(["vt0", "other"]);

    expect(remove("vt0")).toBe(0);
    expect(namesIn(host)).toEqual(["lo", "other"]);
  });

  test("one that is gone already is no error, neither alone nor among others", () => {
    makeVeths(["vt0", "vt1", "vt2", "vt3", "other"]);

    expect(remove("gone", "vt0")).toBe(0);
    expect(remove("gone", "vt1", "vt2", "vt3")).toBe(0);
    expect(namesIn(host)).toEqual(["lo", "other"]);
  });

  test("one that the kernel does not remove is refused, and the others go", () => {
    makeVeths(numbered(3));

    expect(remove("vt0", "lo", "vt1", "vt2")).toBe(1);
    expect(namesIn(host)).toEqual(["lo"]);
  });
});
