import { describe, expect, test } from "bun:test";
import { errnoOf } from "../errno.ts";
import { KernelError } from "../kernel-error.ts";
import { openLinkRemoval } from "./link-removal.ts";

describe("openLinkRemoval()", () => {
  test("tells its callers that no socket can be opened, each time", async () => {
    let opened = 0;
    const removal = openLinkRemoval({
      kernel: {
        openSocket() {
          opened += 1;
          throw new KernelError("open a netlink socket (route)", errnoOf("EMFILE"));
        },
      },
      random: () => 0.5,
      wait: async () => {},
    });
    for (const index of [1, 2]) {
      const both = [removal.remove({ name: "one", index }), removal.remove({ name: "two", index: index + 10 })];
      const outcomes = await Promise.allSettled(both);
      expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    }
    expect(opened).toBeGreaterThan(2);
  });
});
