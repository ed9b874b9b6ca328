import { describe, expect, test } from "bun:test";
import { DROP_GROUP } from "../../firewall/policy-table.ts";
import { type ErrnoName, errnoOf } from "../../linux/errno.ts";
import { KernelError } from "../../linux/kernel-error.ts";
import { type LoggingRefusals, loggingFrom } from "./kernel-logging.ts";

const refused = (name: ErrnoName) => new KernelError("add a rule", errnoOf(name));

function found(refusals: Partial<LoggingRefusals>) {
  const told: string[] = [];
  const logging = loggingFrom(
    { report: undefined, limit: undefined, label: undefined, reject: undefined, ...refusals },
    (message) => told.push(message),
  );
  return { ...logging, told };
}

describe("loggingFrom()", () => {
  test("uses both if the kernel has them, and says nothing", () => {
    expect(found({})).toEqual({ dropGroup: DROP_GROUP, hasLimit: true, told: [] });
  });

  test.each(["ENOENT", "EOPNOTSUPP"] as const)("names the module that is missing: %s", (name) => {
    expect(found({ report: refused(name) })).toEqual({
      ...{ dropGroup: undefined, hasLimit: true },
      told: [expect.stringContaining("the kernel lacks nft_log or nfnetlink_log")],
    });
    expect(found({ limit: refused(name) })).toEqual({
      ...{ dropGroup: DROP_GROUP, hasLimit: false },
      told: [expect.stringContaining("the kernel lacks nft_limit")],
    });
  });

  test("tells only those who want flows that labels are missing", () => {
    expect(found({ label: refused("EOPNOTSUPP") })).toEqual({
      ...{ dropGroup: DROP_GROUP, hasLimit: true, told: [] },
      labelProblem: expect.stringContaining("the kernel lacks CONFIG_NF_CONNTRACK_LABELS"),
    });
  });

  test("tells only those who want denied packets to be rejected that the kernel cannot", () => {
    expect(found({ reject: refused("ENOENT") })).toEqual({
      ...{ dropGroup: DROP_GROUP, hasLimit: true, told: [] },
      rejectProblem: "denyAction Reject is not possible: the kernel lacks nft_reject_inet",
    });
  });

  test("tells any other refusal as it is, and not that something is missing", () => {
    const { told } = found({ report: refused("ENOMEM"), limit: refused("EBUSY") });
    expect(told).toEqual([
      expect.stringContaining(refused("ENOMEM").message),
      expect.stringContaining(refused("EBUSY").message),
    ]);
    expect(told.join()).not.toContain("lacks");
  });
});
