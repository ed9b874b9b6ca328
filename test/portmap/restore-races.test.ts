/** The restore of host ports as a function: it meets an ADD or DEL of the same container, whose file decides; its cost. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Owner, ownerOf } from "../../src/chained/portmap/port-owner.ts";
import { type RecordedPorts, recordFileName, writeRecordFile } from "../../src/chained/portmap/record-file.ts";
import { assignDespiteConflicts } from "../../src/chained/portmap/resolve-conflicts.ts";
import { restoreHostPorts } from "../../src/chained/portmap/restore-ports.ts";
import { tableOf } from "../../src/chained/portmap/table.ts";
import { identity } from "../../src/identity.ts";
import type { Family } from "../../src/ip/address.ts";
import { type FileFolder, openFolder } from "../../src/linux/file-folder.ts";
import {
  closeNetlinkSocket,
  type NetlinkSocket,
  ownSockets,
  type SocketOpener,
} from "../../src/linux/netlink-socket.ts";
import { markOwnNetns } from "../../src/linux/netns-mark.ts";
import { isFirstProcessOfMachine } from "../../src/linux/pid-namespace.ts";
import { address } from "../support/ipam.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";

const area = new NetnsArea("hostports");
const able = canMakeNetns && Bun.which("nft") !== null;
const why = able ? "" : " (skipped: needs root, ip, nsenter and nft)";
const owner = ownerOf("net", { containerId: "c1", ifname: "eth0" });
const NAME = recordFileName(owner.id);
const GONE = "netns 1/1 7 /run/none-such";
/** The files that are left: a test in a container does not see the processes of the machine. */
const UNLESS_PROCESSES_ARE_HIDDEN = isFirstProcessOfMachine() ? [] : [NAME];
/**
 * Of restoreHostPorts(): one to find out what is missing, one to write it, one while there is no table yet; then one to see
 * whether it is still the same.
 */
const FIRST_READS = 3;

/** The text of the file, or what happens meanwhile and leaves none. */
type Read = string | undefined | (() => undefined);

describe.skipIf(!able)(`restoreHostPorts()${why}`, () => {
  let place: TestNetns;
  let socket: NetlinkSocket;
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());
  beforeEach(() => {
    place = area.create();
    socket = insideNetns(place.path, () => ownSockets.openSocket("netfilter"));
  });
  afterEach(() => {
    closeNetlinkSocket(socket);
    area.delete(place);
  });

  const ports = (family: Family = 4) => {
    const { stdout } = Bun.spawnSync([
      ...["nsenter", `--net=${place.path}`, "nft", "-n"],
      `list map ${tableOf(family).family} ${identity.hostPortTable} ports`,
    ]);
    return [...stdout.toString().matchAll(/6 \. [0.:]+ \. (\d+)/g)].map(([, port]) => Number(port)).sort();
  };
  const recordedFor = (holder: Owner, hostPorts: readonly number[], family: Family = 4): RecordedPorts => {
    const hostAddress = address(family === 4 ? "0.0.0.0" : "::");
    const podAddress = address(family === 4 ? "10.0.0.2" : "fd00::2");
    const records = hostPorts.map((hostPort) => ({
      kind: "port" as const,
      claim: { family, protocol: 6, hostAddress, hostPort, podAddress, podPort: 80 },
    }));
    const recordSets = [{ family, owner: holder, netns: "none", records }];
    return { recordSets, loopback: undefined, hostNetns: undefined };
  };
  const textOf = (recorded: RecordedPorts): string => {
    const written: string[] = [];
    writeRecordFile({ write: (_, text) => written.push(text) }, recorded);
    return written.join("");
  };
  const textWith = (...hostPorts: readonly number[]): string => textOf(recordedFor(owner, hostPorts));
  /** What is read, in the order of the reads; the last stays. */
  const restore = async (...texts: readonly Read[]) => restoreWith(ownSockets, texts);
  const restoreWith = async (kernel: SocketOpener, texts: readonly Read[]) => {
    let reads = 0;
    const removed: string[] = [];
    const folder: FileFolder = {
      path: "host-ports",
      list: () => [NAME],
      read: () => {
        const read = texts[Math.min(reads++, texts.length - 1)];
        const text = typeof read === "function" ? read() : read;
        if (text === undefined) throw Object.assign(new Error("no such file"), { code: "ENOENT" });
        return text;
      },
      write: () => {},
      remove: (name) => removed.push(name),
      changedAt: () => 1n,
    };
    const warnings: string[] = [];
    await restoreHostPorts(kernel, socket, folder, (message) => warnings.push(message));
    expect(warnings).toEqual([]);
    return removed;
  };
  const before = (text: string) => new Array<string>(FIRST_READS).fill(text);

  test("writes what the file says", async () => {
    await restore(textWith(80, 81));
    expect(ports()).toEqual([80, 81]);
  });

  test("leaves nothing if a DEL removed the file meanwhile", async () => {
    await restore(...before(textWith(80, 81)), undefined);
    expect(ports()).toEqual([]);
  });

  test("leaves nothing if a DEL removed the file meanwhile, and a later step of the restore failed", async () => {
    const link = { name: "veth0", index: 7, isShared: false, isUplink: false, isNoted: false };
    const text = JSON.stringify({ ...JSON.parse(textWith(80)), loopback: link });
    const kernel: SocketOpener = {
      openSocket: (protocol) => {
        throw new Error(`no socket: ${protocol}`);
      },
    };
    await restoreWith(kernel, [...before(text), undefined]);
    expect(ports()).toEqual([]);
  });

  test("writes what an ADD recorded after a DEL, although it released the ports of the file before", async () => {
    await restore(...before(textWith(80, 81)), undefined, undefined, textWith(81, 82));
    expect(ports()).toEqual([81, 82]);
  });

  /** It removes the file of an earlier one, and maps its ports without a record. */
  const addOnFullDisk = (hostPort: number, netns: string) => (): undefined => {
    const { recordSets } = recordedFor(owner, [hostPort]);
    assignDespiteConflicts(
      socket,
      recordSets.map((each) => ({ ...each, netns })),
    );
  };
  test.each([
    ["other ports", addOnFullDisk(82, "none"), 82],
    ["another namespace", addOnFullDisk(80, "other"), 80],
  ])("keeps the ports of an ADD that could not record them, with %s", async (_, add, expected) => {
    for (const reads of [FIRST_READS, FIRST_READS - 1]) {
      await restore(...new Array<string>(reads).fill(textWith(80)), add, undefined);
      expect(ports()).toEqual([expected]);
      runIn(place, ["nft", "flush ruleset"]);
    }
  });

  test("leaves nothing of a family that the last ADD did not record", async () => {
    await restore(...before(textWith(80)), textOf(recordedFor(owner, [80], 6)));
    expect([ports(), ports(6)]).toEqual([[], [80]]);
  });

  test("writes what an ADD recorded meanwhile", async () => {
    await restore(...before(textWith(80, 81)), textWith(81, 82));
    expect(ports()).toEqual([81, 82]);
  });

  test.each([
    ["of another host network namespace", { hostNetns: "netns 1/1 7 /proc/thread-self/ns/net" }],
    ["for a namespace that is gone", { netns: GONE }],
  ])("writes nothing of what an ADD recorded meanwhile %s", async (_, replaced) => {
    const text = textWith(80);
    await restore(...before(text), JSON.stringify({ ...JSON.parse(text), ...replaced }));
    expect(ports()).toEqual([]);
  });

  test("does not write what is there already: the generation of the ruleset stays", async () => {
    await restore(textWith(80));
    const { stdout: first } = Bun.spawnSync(["nsenter", `--net=${place.path}`, "nft", "-a", "list ruleset"]);
    await restore(textWith(80));
    const { stdout: second } = Bun.spawnSync(["nsenter", `--net=${place.path}`, "nft", "-a", "list ruleset"]);
    expect(second.toString()).toBe(first.toString());
    runIn(place, ["nft", `delete element ip ${identity.hostPortTable} ports { tcp . 0.0.0.0 . 80 }`]);
    await restore(textWith(80));
    expect(ports()).toEqual([80]);
  });

  test.each([
    ["it has no process and is no longer at its path", { netns: GONE }, []],
    ["it has another one at its path", { netns: "netns 1/1 7 /proc/self/ns/net" }, UNLESS_PROCESSES_ARE_HIDDEN],
    [
      "it was reached through a process that has ended",
      { netns: "netns 1/1 7 /proc/0/ns/net" },
      UNLESS_PROCESSES_ARE_HIDDEN,
    ],
    ["it may be hidden: its folder is not here", { netns: "netns 1/1 7 /run/none-such/one" }, [NAME]],
    ["it may be hidden: its path is not a namespace here", { netns: "netns 1/1 7 /proc/version" }, [NAME]],
    ["it has an unknown path", { netns: "netns none - /proc/none" }, [NAME]],
    ["a former release wrote it, perhaps on another host", { netns: GONE, hostNetns: undefined }, [NAME]],
    ["another host wrote it", { netns: GONE, hostNetns: "netns 1/1 7 /proc/thread-self/ns/net" }, [NAME]],
  ])("removes the record only if the namespace is gone for sure: %s", async (_, { netns, ...host }, left) => {
    using temporary = temporaryFolder();
    const { recordSets, ...others } = recordedFor(owner, [80]);
    const recorded = { ...others, hostNetns: markOwnNetns(), ...host };
    writeRecordFile(temporary.folder, { ...recorded, recordSets: recordSets.map((each) => ({ ...each, netns })) });
    await restoreHostPorts(ownSockets, socket, temporary.folder, (message) => expect(message).toBe(""));
    expect(temporary.folder.list()).toEqual(left);
  });

  test("keeps the record of an ADD that came while the one before was found gone", async () => {
    const { recordSets, ...others } = recordedFor(owner, [80]);
    const recorded = { ...others, hostNetns: markOwnNetns() };
    const gone = textOf({ ...recorded, recordSets: recordSets.map((each) => ({ ...each, netns: GONE })) });
    const removed = await restoreWith(ownSockets, [gone, textWith(80)]);
    expect(removed).toEqual([]);
  });

  test("reports a record that it cannot remove as that", async () => {
    const { recordSets, ...others } = recordedFor(owner, [80]);
    const gone = textOf({
      ...{ ...others, hostNetns: markOwnNetns() },
      recordSets: recordSets.map((each) => ({ ...each, netns: GONE })),
    });
    const folder: FileFolder = {
      ...{ path: "host-ports", list: () => [NAME], read: () => gone, write: () => {}, changedAt: () => 1n },
      remove: () => {
        throw new Error("read-only file system");
      },
    };
    const warnings: string[] = [];
    await restoreHostPorts(ownSockets, socket, folder, (message) => warnings.push(message));
    expect(warnings).toEqual([
      `Cannot remove the record "host-ports/${NAME}" of a container that is gone: read-only file system`,
    ]);
  });

  test("asks the kernel as much for many containers as for one, if all have their ports", async () => {
    using temporary = temporaryFolder();
    const { folder } = temporary;
    const requests = async () => {
      const before = socket.nextSequence;
      expect(await restoreHostPorts(ownSockets, socket, folder, (message) => expect(message).toBe(""))).toEqual([]);
      return socket.nextSequence - before;
    };
    const asked: number[] = [];
    for (const count of [1, 20]) {
      for (let index = 0; index < count; index++) {
        const holder = ownerOf("net", { containerId: `c${index}`, ifname: "eth0" });
        writeRecordFile(folder, recordedFor(holder, [1000 + index]));
      }
      await restoreHostPorts(ownSockets, socket, folder, (message) => expect(message).toBe(""));
      asked.push(await requests());
    }
    expect(asked[1]).toBe(asked[0] ?? 0);
  });
});

function temporaryFolder(): { readonly folder: FileFolder } & Disposable {
  const directory = mkdtempSync(join(tmpdir(), "host-ports-"));
  return { folder: openFolder(directory), [Symbol.dispose]: () => rmSync(directory, { recursive: true }) };
}
