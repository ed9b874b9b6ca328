/** Many callers of one process remove links at the same time. The process runs inside the namespace. */
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
  /** The number of refused removals. */
  const remove = (...args: readonly string[]) => Number(runIn(host, [process.execPath, PROCESS, ...args]));
  const numbered = (count: number) => Array.from({ length: count }, (_, index) => `vt${index}`);

  test("are all removed with their other ends, and no other link is", () => {
    const removed = numbered(30);
    makeVeths([...removed, "other", "grouped"]);
    runIn(host, ["ip", "link", "set", "grouped", "group", "7"]);

    expect(remove(...removed)).toBe(0);
    expect(namesIn(host)).toEqual(["lo", "other", "grouped"]);
    expect(namesIn(pod)).toEqual(["lo", "other", "grouped"]);
  });

  test("include a single link", () => {
    makeVeths(["vt0", "other"]);

    expect(remove("vt0")).toBe(0);
    expect(namesIn(host)).toEqual(["lo", "other"]);
  });

  test("may be gone already, a single one or some of many", () => {
    makeVeths(["vt0", "vt1", "vt2", "vt3", "other"]);

    expect(remove("gone", "vt0")).toBe(0);
    expect(remove("gone", "vt1", "vt2", "vt3")).toBe(0);
    expect(namesIn(host)).toEqual(["lo", "other"]);
  });

  test("are removed except for one that the kernel refuses", () => {
    makeVeths(numbered(3));

    expect(remove("vt0", "lo", "vt1", "vt2")).toBe(1);
    expect(namesIn(host)).toEqual(["lo"]);
  });
});
