import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pollUntil } from "../../../test/support/poll.ts";
import { openFolder } from "../../linux/file-folder.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { StatusFiles } from "./status-files.ts";

let folder = "";
let directory = "";
let stop = new AbortController();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "vt-status-"));
  directory = join(folder, "endpoint-status");
  stop = new AbortController();
});
afterEach(() => {
  stop.abort();
  rmSync(folder, { recursive: true });
});

function localEndpoint(pod: string, containerID = `container-of-${pod}`) {
  const name = `node-k8s-${pod}-eth0`;
  const endpoint = workloadEndpoint.make(
    { name, namespace: "shop" },
    {
      orchestrator: "k8s",
      node: "node",
      pod,
      containerID,
      endpoint: "eth0",
      ipNetworks: ["10.0.0.1/32", "fd00::1/128"],
      interfaceName: `vend${pod}`,
      mac: "02:00:00:00:00:01",
    },
  );
  return { endpoint, interfaceName: `vend${pod}` };
}

function startFiles(up: ReadonlySet<string>) {
  const reports: string[] = [];
  const status = new StatusFiles({
    folder: openFolder(directory),
    upOf: (names) => new Set(names.filter((name) => up.has(name))),
    wait: async (milliseconds, signal) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, milliseconds);
      signal.addEventListener("abort", () => resolve());
      await promise;
      clearTimeout(timer);
    },
    elapsed: () => performance.now(),
    report: (message) => void reports.push(message),
  });
  void status.run(stop.signal);
  return { status, reports };
}

const files = () => readdirSync(directory).sort();
const untilFiles = (...names: readonly string[]) =>
  pollUntil(() => Bun.deepEquals(files(), names), `files: ${names.join(", ")}`, 5_000);

describe("StatusFiles", () => {
  test("writes the status of an endpoint when its interface is up, and removes it with the endpoint", async () => {
    const up = new Set<string>();
    const { status } = startFiles(up);
    const local = new Map([["a", localEndpoint("a")]]);
    status.update(["a"], local);
    await Bun.sleep(20);
    expect(files()).toEqual([]);
    up.add("venda");
    await untilFiles("k8s shop%2Fa eth0");
    expect(JSON.parse(readFileSync(join(directory, "k8s shop%2Fa eth0"), "utf8"))).toEqual({
      containerID: "container-of-a",
      ifaceName: "venda",
      mac: "02:00:00:00:00:01",
      ipv4Nets: ["10.0.0.1/32"],
      ipv6Nets: ["fd00::1/128"],
    });

    local.delete("a");
    status.update(["a"], local);
    expect(files()).toEqual([]);
  });

  test("removes files of no endpoint at the first update, and keeps those that are right", async () => {
    mkdirSync(directory);
    for (const name of ["k8s shop%2Fa eth0", "k8s shop%2Fgone eth0"]) {
      writeFileSync(join(directory, name), '{"containerID":"container-of-a","kept":true}');
    }
    const { status } = startFiles(new Set(["venda"]));
    status.update([], new Map([["a", localEndpoint("a")]]));

    expect(files()).toEqual(["k8s shop%2Fa eth0"]);
    await Bun.sleep(20);
    expect(readFileSync(join(directory, "k8s shop%2Fa eth0"), "utf8")).toContain("kept");
  });

  test("removes the files of an earlier agent if there are no rules any more", () => {
    const { status } = startFiles(new Set());
    status.clear();
    expect(existsSync(directory)).toBe(false);
    mkdirSync(directory);
    writeFileSync(join(directory, "k8s shop%2Fa eth0"), '{"containerID":"container-of-a"}');

    const { status: next } = startFiles(new Set());
    next.clear();
    expect(files()).toEqual([]);
  });

  test("removes the file of an earlier sandbox at once, and writes it again for the new one", async () => {
    const up = new Set(["venda"]);
    const { status } = startFiles(up);
    status.update(["a"], new Map([["a", localEndpoint("a", "first")]]));
    await untilFiles("k8s shop%2Fa eth0");
    up.clear();
    status.update(["a"], new Map([["a", localEndpoint("a", "second")]]));
    expect(files()).toEqual([]);
    up.add("venda");
    await untilFiles("k8s shop%2Fa eth0");
    expect(readFileSync(join(directory, "k8s shop%2Fa eth0"), "utf8")).toContain("second");
  });

  test("tries again if a file cannot be written", async () => {
    writeFileSync(directory, "not a folder");
    const { status, reports } = startFiles(new Set(["venda"]));
    status.update(["a"], new Map([["a", localEndpoint("a")]]));
    await pollUntil(() => reports.length > 1, "a report");
    rmSync(directory);
    await untilFiles("k8s shop%2Fa eth0");
  });

  test("writes again what another program removed, and reads files only if the folder has changed", async () => {
    let comparisons = 0;
    const status = new StatusFiles({
      folder: openFolder(directory),
      upOf: (names) => new Set(names),
      wait: () => Bun.sleep(1),
      elapsed: () => 10_000 * comparisons++,
      report: () => {},
    });
    void status.run(stop.signal);
    status.update(["a"], new Map([["a", localEndpoint("a")]]));
    await untilFiles("k8s shop%2Fa eth0");
    const path = join(directory, "k8s shop%2Fa eth0");
    rmSync(path);
    await untilFiles("k8s shop%2Fa eth0");

    const laterComparisons = async () => {
      const end = comparisons + 40;
      await pollUntil(() => comparisons > end, "more comparisons");
    };
    await laterComparisons();
    // A time of access before that of the last change is updated by every file system that has one.
    utimesSync(path, new Date(0), new Date());
    await laterComparisons();
    expect(statSync(path).atimeMs).toBe(0);
  });
});
