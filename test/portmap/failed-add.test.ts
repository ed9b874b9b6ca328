/** An ADD of host ports that fails, as a function: it reports why, whatever cannot be undone. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mapPorts } from "../../src/chained/portmap/map-ports.ts";
import { ownerOf } from "../../src/chained/portmap/port-owner.ts";
import { hostPortsFolder, removeRecordFile } from "../../src/chained/portmap/record-file.ts";
import type { AddCall } from "../../src/cni/call.ts";
import { PluginError } from "../../src/errors.ts";
import { errnoOf } from "../../src/linux/errno.ts";
import { openFolder } from "../../src/linux/file-folder.ts";
import { netfilterOf } from "../../src/linux/netfilter-access.ts";
import { type NetlinkSocket, ownSockets } from "../../src/linux/netlink-socket.ts";

const CALL: AddCall = {
  ...{ command: "ADD", networkName: "net", cniVersion: "1.1.0" },
  ...{ config: {}, stdin: new Uint8Array(), environment: {}, path: [], args: "" },
  ...{ containerId: "c1", ifname: "eth0", netns: "/run/none-such", prevResult: undefined },
};

describe("mapPorts()", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "host-ports-"));
    // No name in it can be reached: files can be neither written nor removed.
    symlinkSync("host-ports", hostPortsFolder(directory));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  test("reports why the ports cannot be recorded, although they cannot be released either", async () => {
    const warnings: string[] = [];
    const adding = mapPorts(
      CALL,
      {
        result: {
          ...{ cniVersion: "1.1.0", interfaces: [], ips: [{ address: "10.0.0.2/24" }], routes: [] },
          dns: { nameservers: [], search: [], options: [] },
        },
        options: { masquerade: "none" },
        mappings: [{ protocol: "sctp", hostPort: 80, containerPort: 80 }],
      },
      {
        loadNetfilter: async () => netfilterOf({ openSocket: refusingSocket }),
        runDirectory: directory,
        openFolder: async (path) => openFolder(path),
        log: { warning: (message) => warnings.push(message), changed: () => {} },
      },
    );
    const failure = await adding.catch((cause: unknown) => cause);

    expect(failure).toBeInstanceOf(PluginError);
    if (!(failure instanceof PluginError)) return;
    expect([failure.kind, failure.message]).toEqual(["io-failure", expect.stringContaining("Cannot remove")]);
    expect(failure.cause).toBeInstanceOf(Error);
    expect(failure.details).toContain("host-ports");
    // The file, and the ports.
    expect(warnings).toHaveLength(2);
  });

  test("a file that cannot be looked at does not count as removed", () => {
    const { id } = ownerOf("net", CALL);
    expect(() => removeRecordFile(directory, id)).toThrow("Cannot remove");
  });
});

/** The kernel has no memory for any message. */
function refusingSocket(): NetlinkSocket {
  const socket = ownSockets.openSocket("netfilter");
  socket.channel.send = () => errnoOf("ENOBUFS");
  return socket;
}
