/** The tables of a host in the kernel, compared by the agent: what it reports, and how often. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HostTables } from "../../src/agent/tables/host-tables.ts";
import { ownerOf } from "../../src/chained/portmap/port-owner.ts";
import { recordFileName, writeRecordFile } from "../../src/chained/portmap/record-file.ts";
import { type FileFolder, openFolder } from "../../src/linux/file-folder.ts";
import { netfilterOf } from "../../src/linux/netfilter-access.ts";
import { ownSockets, type SocketOpener } from "../../src/linux/netlink-socket.ts";
import { onceEach } from "../../src/log/once-each.ts";
import { address } from "../support/ipam.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, type TestNetns } from "../support/netns.ts";

const area = new NetnsArea("hosttables");
const able = canMakeNetns;
const why = able ? "" : " (skipped: needs root, ip and nsenter)";

describe.skipIf(!able)(`HostTables${why}`, () => {
  let place: TestNetns;
  let directory: string;
  let hostPorts: FileFolder;
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());
  beforeEach(() => {
    place = area.create();
    directory = mkdtempSync(join(tmpdir(), "host-tables-"));
    hostPorts = openFolder(directory);
  });
  afterEach(() => {
    area.delete(place);
    rmSync(directory, { recursive: true });
  });

  const record = (containerId: string, hostPort: number) => {
    const owner = ownerOf("net", { containerId, ifname: "eth0" });
    const to = { podAddress: address("10.0.0.2"), podPort: 80 };
    const claim = { family: 4 as const, protocol: 6, hostAddress: address("0.0.0.0"), hostPort, ...to };
    const recordSets = [{ family: 4 as const, owner, netns: "none", records: [{ kind: "port" as const, claim }] }];
    writeRecordFile(hostPorts, { recordSets, loopback: undefined, hostNetns: undefined });
    return recordFileName(owner.id);
  };

  test("reports a problem once while it lasts, and again when it is back, whatever other problem stays", async () => {
    const kernel: SocketOpener = {
      openSocket: (protocol) => insideNetns(place.path, () => ownSockets.openSocket(protocol)),
    };
    let now = 0;
    let logged: string[] = [];
    const tables = new HostTables({
      ...{ kernel, netfilter: netfilterOf(kernel), hostPorts, elapsed: () => now, log: () => {} },
      ...{ hasGuard: () => false, sources: () => [] },
      problems: onceEach((message) => logged.push(message)),
    });
    /** What is logged by the comparison a minute later. */
    const check = async () => {
      now += 60_000;
      logged = [];
      await tables.check();
      return logged;
    };
    record("first", 80);
    expect(await check()).toEqual([]);
    // Theirs meanwhile, for good.
    record("second", 80);
    expect(await check()).toEqual([expect.stringContaining("belongs to")]);
    expect(await check()).toEqual([]);

    const name = record("third", 81);
    const text = hostPorts.read(name);
    for (let times = 0; times < 2; times++) {
      hostPorts.write(name, "damaged");
      expect(await check()).toEqual([expect.stringContaining(name)]);
      expect(await check()).toEqual([]);
      hostPorts.write(name, text);
      expect(await check()).toEqual([]);
    }
  });

  test("reports that it cannot compare whenever that begins, and compares as soon as it can", async () => {
    let isRefused = false;
    const kernel: SocketOpener = {
      openSocket: (protocol) => {
        if (isRefused && protocol === "route") throw new Error("no buffer space");
        return insideNetns(place.path, () => ownSockets.openSocket(protocol));
      },
    };
    let now = 0;
    let logged: string[] = [];
    const tables = new HostTables({
      ...{ kernel, netfilter: netfilterOf(kernel), hostPorts, elapsed: () => now },
      ...{ hasGuard: () => false, sources: () => [] },
      log: (message) => logged.push(message),
      problems: onceEach((message) => logged.push(message)),
    });
    /** What is logged a second later. */
    const check = async () => {
      now += 1_000;
      logged = [];
      await tables.check();
      return logged;
    };
    await check();
    for (let times = 0; times < 2; times++) {
      record(`flushed-${times}`, 80 + times);
      tables.sourcesChanged();
      isRefused = true;
      expect(await check()).toEqual([expect.stringContaining("Cannot compare")]);
      expect(await check()).toEqual([]);
      isRefused = false;
      expect(await check()).toEqual([expect.stringContaining("Wrote")]);
    }
  });
});
