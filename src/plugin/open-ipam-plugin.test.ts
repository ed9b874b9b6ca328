import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import type { DelCall } from "../cni/call.ts";
import { directIpamHost } from "../ipam/ipam-host.ts";
import { placeOf } from "../linux/files.ts";
import { openIpamPlugin } from "./open-ipam-plugin.ts";
import type { Surroundings } from "./session.ts";

const folder = temporaryDirectory("open-ipam");
afterAll(() => folder.remove());

describe("openIpamPlugin()", () => {
  test("runs our own host-local in this process, unless CNI_PATH has another file of that name", async () => {
    const [bin, program, trace] = ["bin", "bin/host-local", "trace"].map((name) => join(folder.path, name));
    mkdirSync(bin ?? "");
    const install = () => {
      writeFileSync(`${program}.new`, `#!/bin/sh\ncat > ${trace}\n`);
      chmodSync(`${program}.new`, 0o755);
      renameSync(`${program}.new`, program ?? "");
    };
    install();
    const own = placeOf(program ?? "");
    const del = async () => {
      const plugin = await openIpamPlugin("host-local", CALL, surroundingsWith(own));
      await plugin.del(CALL, new AbortController().signal);
      return existsSync(trace ?? "");
    };
    expect(await del()).toBe(false);
    install();
    expect(placeOf(program ?? "")).not.toBe(own);
    expect(await del()).toBe(true);
  });
});

const CONFIG = { name: "net", cniVersion: "1.0.0", ipam: { type: "host-local", dataDir: join(folder.path, "data") } };

const CALL: DelCall = {
  command: "DEL",
  cniVersion: "1.0.0",
  networkName: "net",
  config: CONFIG,
  stdin: new TextEncoder().encode(JSON.stringify(CONFIG)),
  environment: { CNI_PATH: join(folder.path, "bin"), PATH: "/usr/bin:/bin" },
  path: [join(folder.path, "bin")],
  containerId: "c1",
  ifname: "eth0",
  args: "",
  prevResult: undefined,
  netns: undefined,
};

function surroundingsWith(place: string | undefined): Surroundings {
  return { host: directIpamHost, executablePlace: () => place, delegateStderr: () => {} } as unknown as Surroundings;
}
