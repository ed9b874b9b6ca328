import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { nodeChange, poolChange, seed } from "../../../test/support/ipam.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION } from "../../identity.ts";
import { writeHandle } from "../../model/ipam-handle.ts";
import { handleKey, resourceKey } from "../../model/keys.ts";
import { openProgress } from "../terminal/progress.ts";
import { EXIT_OK } from "./command.ts";
import { Interruption, STOP_EXIT_CODES } from "./interruption.ts";

let store = openMemory();
let user = new AbortController();
let calls: string[] = [];
beforeEach(() => {
  store = openMemory();
  user = new AbortController();
  calls = [];
});

const STOPPED = { code: STOP_EXIT_CODES.SIGINT, stderr: "error: Cannot finish: interrupted by SIGINT\n" };

function stop(): void {
  user.abort(new Interruption("SIGINT"));
}

/** Calls `before` ahead of each read and commit, and records the calls. */
function watched(before: (call: string, count: number) => unknown): Datastore {
  const counted = async (call: string) => {
    calls.push(call);
    await before(call, calls.filter((each) => each === call).length);
  };
  return storeAround(store, {
    read: (wanted) => counted("read").then(() => store.read(wanted)),
    commit: (changes) => counted("commit").then(() => store.commit(changes)),
    close: () => counted("close"),
  });
}

function ctl(words: string, on: Datastore, more: AdminSurroundings = {}) {
  return runInside(words.split(" "), {
    ...{ signal: user.signal, openDatastore: async () => on, wait: Bun.sleep, env: { ETCD_ENDPOINTS: "http://a:1" } },
    ...more,
  });
}

const never = new Promise<never>(() => {});

describe("an interrupted command", () => {
  const documents = (...all: readonly object[]) => all.map((each) => JSON.stringify(each)).join("\n---\n");
  const node = (name: string) => ({ apiVersion: API_VERSION, kind: "Node", metadata: { name } });
  const names = async (plural: string) => {
    const below = resourceKey(plural, { name: "" });
    const { answers } = await store.read([{ kind: "prefix", prefix: below }]);
    return answers.flat().map(({ key }) => key.slice(below.length));
  };

  test("reads no further page of a long check, writes nothing and closes the datastore", async () => {
    const value = writeHandle({ blocks: { "10.0.0.0/26": 1 }, deleted: false });
    const keys = Array.from({ length: 2_000 }, (_, index) => handleKey(`net.${index}`));
    await seed(store, ...keys.map((key) => ({ kind: "put", key, value }) as const));
    const on = watched((call, count) => call === "read" && count === 4 && stop());

    expect(await ctl("ipam check --fix", on)).toEqual({ ...STOPPED, stdout: "" });
    expect(calls).toEqual(["read", "read", "read", "read", "close"]);
  });

  test("handles the signal even if its datastore never yields", async () => {
    await seed(store, ...Array.from({ length: 2_000 }, (_, index) => nodeChange(`n${index}`)));
    setImmediate(stop);

    expect(await ctl("get nodes -o name", store)).toEqual({ ...STOPPED, stdout: "" });
  });

  test.each([
    "get nodes",
    "ipam show",
    "ipam check",
    "ipam release --ip 10.0.0.1",
    "datastore check",
    "datastore init",
  ])("does not wait for a datastore that does not respond: %s", async (words) => {
    const on = watched((call) => {
      if (call !== "read") return undefined;
      stop();
      return never;
    });

    expect(await ctl(words, on)).toEqual({ ...STOPPED, stdout: "" });
    expect(calls).toEqual(["read", "close"]);
  });

  test("does not wait for a datastore to open, and closes one that opens too late", async () => {
    const { promise: opened, resolve } = Promise.withResolvers<Datastore>();
    const openDatastore = () => {
      stop();
      return opened;
    };

    expect(await ctl("get nodes", store, { openDatastore })).toEqual({ ...STOPPED, stdout: "" });
    resolve(watched(() => {}));
    await opened;
    await Bun.sleep(0);
    expect(calls).toEqual(["close"]);
  });

  test.each(["apply -f -", "config check -"])("does not wait for standard input: %s", async (words) => {
    const readStdin = () => {
      user.abort(new Interruption("SIGTERM"));
      return never;
    };

    expect(await ctl(words, store, { readStdin })).toMatchObject({ code: STOP_EXIT_CODES.SIGTERM, stdout: "" });
  });

  test("completes the commit in progress, starts no other, and reports what was done", async () => {
    const on = watched((call, count) => call === "commit" && count === 2 && stop());
    const stdin = documents(node("n1"), node("n2"), node("n3"));

    const { code, stdout } = await ctl("apply -f - -o json", on, { stdin });

    expect(code).toBe(STOP_EXIT_CODES.SIGINT);
    expect(JSON.parse(stdout).results.map(({ resource }: { resource: string }) => resource)).toEqual([
      "node/n1",
      "node/n2",
    ]);
    expect(await names("nodes")).toEqual(["n1", "n2"]);
    expect(calls.at(-1)).toBe("close");
  });

  test("reports that a commit takes long, and closes the datastore after it", async () => {
    const { promise: written, resolve } = Promise.withResolvers<void>();
    const on = watched((call) => {
      if (call !== "commit") return undefined;
      stop();
      return written;
    });
    const running = ctl("datastore init", on, { wait: async () => void setImmediate(resolve) });

    const { code, stderr } = await running;

    expect(code).toBe(EXIT_OK);
    expect(stderr).toStartWith("note: a write is in progress");
    expect(calls).toEqual(["read", "commit", "close"]);
  });

  test("deletes a new pool again if it could not finish its checks", async () => {
    const pool = (name: string, cidr: string) => ({
      apiVersion: API_VERSION,
      kind: "IPPool",
      metadata: { name },
      spec: { cidr },
    });
    const on = watched((call, count) => call === "commit" && count === 2 && stop());
    const stdin = documents(pool("blue", "10.0.0.0/24"), pool("red", "10.0.1.0/24"));

    expect(await ctl("apply -f -", on, { stdin })).toEqual({ ...STOPPED, stdout: "ippool/blue created\n" });
    expect(await names("ippools")).toEqual(["blue"]);
  });

  test("enables a pool again that it was about to delete", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24"));
    const wait = () => {
      stop();
      return never;
    };

    expect(
      await ctl(
        "delete pool blue",
        watched(() => {}),
        { wait },
      ),
    ).toEqual({ ...STOPPED, stdout: "" });
    const { stdout } = await runInside(["get", "pool", "blue", "-o", "json"], { store });
    expect(JSON.parse(stdout).spec.disabled).toBe(false);
  });

  test("reports a failure that has another cause", async () => {
    await seed(store, nodeChange("n1"));
    const on = watched((call) => {
      if (call !== "commit") return;
      stop();
      throw new PluginError("datastore-unavailable", "Cannot use the datastore: the outcome is unknown");
    });

    const { code, stderr } = await ctl("label node n1 a=b", on);

    expect(code).toBe(STOP_EXIT_CODES.SIGINT);
    expect(stderr).toBe(`error: Cannot use the datastore: the outcome is unknown\n${STOPPED.stderr}`);
  });

  test("erases its progress line", () => {
    const shown: string[] = [];
    const stderr = (text: string) => void shown.push(text);
    const progress = openProgress({ showsProgress: true, stderr, signal: user.signal }, "Working", 30);
    progress.step();
    stop();

    expect(shown).toEqual([expect.stringContaining("Working: 1 of 30"), "\r\u001b[K"]);
  });

  test("that had already finished succeeds", async () => {
    const on = watched((call) => call === "close" && stop());

    expect(await ctl("get nodes -o name", on)).toEqual({ code: EXIT_OK, stdout: "", stderr: "" });
  });
});
