/** GC of host ports as a function: which records of attachments that no longer exist it removes. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gc } from "../../src/chained/portmap/gc.ts";
import { ownerOf } from "../../src/chained/portmap/port-owner.ts";
import { hostPortsFolder, recordFileName, writeRecordFile } from "../../src/chained/portmap/record-file.ts";
import type { GcCall } from "../../src/cni/call.ts";
import { type FileFolder, openFolder } from "../../src/linux/file-folder.ts";
import { netfilterOf } from "../../src/linux/netfilter-access.ts";
import { ownSockets, type SocketOpener } from "../../src/linux/netlink-socket.ts";
import { markOwnNetns } from "../../src/linux/netns-mark.ts";
import { isFirstProcessOfMachine } from "../../src/linux/pid-namespace.ts";
import { address } from "../support/ipam.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, type TestNetns } from "../support/netns.ts";

const NETWORK = "net";
const area = new NetnsArea("hostportsgc");
const why = canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)";
const idOf = (containerId: string) => ownerOf(NETWORK, { containerId, ifname: "eth0" });
const nameOf = (containerId: string) => recordFileName(idOf(containerId).id);

describe.skipIf(!canMakeNetns)(`gc()${why}`, () => {
  let place: TestNetns;
  let directory: string;
  let folder: FileFolder;
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());
  beforeEach(() => {
    place = area.create();
    directory = mkdtempSync(join(tmpdir(), "host-ports-"));
    folder = openFolder(hostPortsFolder(directory));
  });
  afterEach(() => {
    area.delete(place);
    rmSync(directory, { recursive: true });
  });

  const record = (containerId: string, hostNetns: string) => {
    const to = { podAddress: address("10.0.0.2"), podPort: 80 };
    const claim = { family: 4 as const, protocol: 6, hostAddress: address("0.0.0.0"), hostPort: 80, ...to };
    const records = [{ kind: "port" as const, claim }];
    const recordSets = [{ family: 4 as const, owner: idOf(containerId), netns: "none", records }];
    writeRecordFile(folder, { recordSets, loopback: undefined, hostNetns });
  };
  /** Returns the files that are left. */
  const collect = async (...valid: readonly string[]) => {
    const kernel: SocketOpener = {
      openSocket: (protocol) => insideNetns(place.path, () => ownSockets.openSocket(protocol)),
    };
    const call: GcCall = {
      ...{ command: "GC", networkName: NETWORK, cniVersion: "1.1.0" },
      ...{ config: {}, stdin: new Uint8Array(), environment: {}, path: [] },
      validAttachments: valid.map((containerId) => ({ containerId, ifname: "eth0" })),
    };
    await gc(call, {
      loadNetfilter: async () => netfilterOf(kernel),
      runDirectory: directory,
      openFolder: async (path) => openFolder(path),
      log: { warning: (message) => expect(message).toBe(""), changed: () => {} },
    });
    return folder.list();
  };

  test("removes the files of attachments that are not listed", async () => {
    for (const id of ["listed", "stale"]) record(id, markOwnNetns());
    expect(await collect("listed")).toEqual([nameOf("listed")]);
  });

  test("removes what an ADD that was killed has left of their files", async () => {
    const unfinished = (containerId: string) => `.unfinished-${nameOf(containerId)}`;
    for (const id of ["listed", "stale"]) folder.write(unfinished(id), "{");
    folder.write(".unfinished-else", "");
    expect([...(await collect("listed"))].sort()).toEqual([".unfinished-else", unfinished("listed")].sort());
  });

  test("removes the files of another host namespace only when it is gone for sure", async () => {
    const other = area.create();
    record(
      "stale",
      insideNetns(other.path, () => markOwnNetns()),
    );
    // No process is in it, but it has a path.
    expect(await collect()).toEqual([nameOf("stale")]);
    area.delete(other);
    expect(await collect()).toEqual(isFirstProcessOfMachine() ? [] : [nameOf("stale")]);
  });
});
