import { afterEach, describe, expect, test } from "bun:test";
import { addressesOfProcesses } from "../../src/linux/container-addresses.ts";
import { canMakeNetns, NetnsArea, runIn } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";

const area = new NetnsArea("containers");
const why = canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)";

describe.skipIf(!canMakeNetns)(`the addresses of containers, whichever plugin connected them${why}`, () => {
  afterEach(() => area.sweep());

  test("are those of every namespace that a process is in", async () => {
    const netns = area.create();
    runIn(netns, ["ip", "address", "add", "10.253.17.3/32", "dev", "lo"]);
    runIn(netns, ["ip", "address", "add", "fd00:253::3/128", "dev", "lo", "nodad"]);
    // No container runs there.
    expect(addressesOfProcesses()).not.toContain("10.253.17.3");

    const container = Bun.spawn(["nsenter", `--net=${netns.path}`, "--", "cat"], { stdin: "pipe" });
    await pollUntil(() => addressesOfProcesses().has("10.253.17.3"), "the address of the container");
    expect(addressesOfProcesses()).toContain("fd00:253::3");
    container.stdin.end();
    await container.exited;
    expect(addressesOfProcesses()).not.toContain("10.253.17.3");
  });
});
