import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { untilLinkLocal } from "../support/connectivity.ts";
import { canMakeNetns, NetnsArea, runIn } from "../support/netns.ts";

const area = new NetnsArea("linklocal");

describe.skipIf(!canMakeNetns)(
  `untilLinkLocal()${canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)"}`,
  () => {
    beforeAll(() => area.sweep());
    afterAll(() => area.sweep());

    test("waits for the address of a link that has no carrier yet", async () => {
      const netns = area.create();
      const ip = (words: string) => runIn(netns, ["ip", ...words.split(" ")]);
      ip("link add eth0 type veth peer name eth1");
      ip("link set eth0 up");
      let looks = 0;
      const run = async (command: readonly string[]) => {
        const shown = runIn(netns, command);
        looks += 1;
        if (looks === 1) ip("link set eth1 up");
        return shown;
      };

      await untilLinkLocal(run, "eth0");

      expect(ip("-6 addr show dev eth0 -tentative")).toMatch(/inet6 fe80::\S+ scope link/);
    });
  },
);
