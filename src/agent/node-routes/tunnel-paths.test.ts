import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { address } from "../../../test/support/ip.ts";
import { identity } from "../../identity.ts";
import { openFolder } from "../../linux/file-folder.ts";
import type { RoutePlan } from "../../routing/plan.ts";
import { TunnelPaths } from "./tunnel-paths.ts";

const PLAN: RoutePlan = {
  tunnels: new Map([
    [
      "vxlan4",
      {
        ...{ name: "vxlan4", local: address("192.168.5.1"), address: address("10.60.0.1") },
        vxlan: { port: 4789, id: 4096 },
      },
    ],
  ]),
  ...{ peers: new Map(), routes: new Map(), senders: new Map(), announced: new Map(), outsidePools: new Map() },
  ...{ problems: [], isPartial: false },
};

/** What an agent says about the device, if its predecessor has left this file. */
function problemsAfter(file: string, linkIndex = 7): readonly string[] {
  const path = mkdtempSync(join(tmpdir(), "tunnel-paths-"));
  try {
    writeFileSync(join(path, "tunnel-paths.json"), file);
    const unused = () => {
      throw new Error("not used");
    };
    const paths = new TunnelPaths({
      ...{ node: "a", folder: openFolder(path), needsOwnChecksums: false, setting: () => "Auto" },
      probes: { probe: unused, answer: unused, isOffloadOn: unused, setOffload: unused },
      devices: () => new Map([["vxlan4", { index: linkIndex, mtu: 1450 }]]),
      clock: { elapsed: () => 0, now: () => new Date(0), random: () => 0, wait: unused },
      ...{ report: unused, tell: unused },
    });
    paths.note(PLAN);
    return paths.problems;
  } finally {
    rmSync(path, { recursive: true });
  }
}

const left = (record: object) => JSON.stringify({ [identity.vxlanDevice]: { linkIndex: 7, record } });
const OFF = [
  `Checksum offload of ${identity.vxlanDevice} is off: only TCP is lost. To try it again, set vxlanChecksumOffload to On`,
];

test.each([
  ["this release", { by: "probes", reason: "only TCP is lost" }],
  ["a former one, which wrote a field more", { state: "off", by: "probes", reason: "only TCP is lost" }],
])("an agent knows why offload is off from the file of its predecessor of %s", (_, record) => {
  expect(problemsAfter(left(record))).toEqual(OFF);
});

test("it knows nothing of a device that was made again, and nothing from a damaged file", () => {
  expect(problemsAfter(left({ by: "probes", reason: "only TCP is lost" }), 8)).toEqual([]);
  expect(problemsAfter(left({ by: "nobody", reason: "" }))).toEqual([]);
});
