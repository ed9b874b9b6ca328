import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../test/support/admin-context.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import type { Change, Datastore } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { resourceKey } from "../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

const KEY = resourceKey("nodes", { name: "n1" });
const POOL_KEY = resourceKey("ippools", { name: "blue" });
const NODE = { apiVersion: API_VERSION, kind: "Node", metadata: { name: "n1" } };
const POOL = { apiVersion: API_VERSION, kind: "IPPool", metadata: { name: "blue" }, spec: { cidr: "10.0.0.0/24" } };

let store = openMemory();
beforeEach(() => {
  store = openMemory();
});

function ctl(words: string, { stdin = {}, on = store }: { stdin?: object; on?: Datastore } = {}): Promise<AdminRun> {
  return runInside([...words.split(" "), "-o", "json"], { store: on, stdin: JSON.stringify(stdin) });
}

async function outcomeOf(run: Promise<AdminRun>): Promise<unknown> {
  const { code, stdout } = await run;
  const [{ reason, retry }] = JSON.parse(stdout).results;
  return { code, reason, retry };
}

/** A store with a faster writer: its change comes right before each of the first `times` commits. */
function racedBy(change: (value: string, revision: string) => Change, { times = 1, key = KEY } = {}): Datastore {
  let left = times;
  return storeAround(store, {
    async commit(changes) {
      const [entry] = (await store.read([{ kind: "key", key }])).answers.flat();
      if (left > 0) await store.commit([change(entry?.value ?? JSON.stringify(NODE), entry?.revision ?? "")]);
      left -= 1;
      return store.commit(changes);
    },
  });
}

const touch = (key: string) => (value: string) => ({ kind: "put", key, value: `${value} ` }) as const;
const remove = (key: string) => (_: string, revision: string) => ({ kind: "delete", key, revision }) as const;

describe("a refused write", () => {
  test("reports that the resource exists", async () => {
    await ctl("apply -f -", { stdin: NODE });

    expect(await outcomeOf(ctl("create -f -", { stdin: NODE }))).toEqual({
      code: EXIT_FAILED,
      reason: "resource-exists",
      retry: "no",
    });
  });

  test("reports it also if it was created concurrently", async () => {
    const on = racedBy(touch(KEY));

    expect(await outcomeOf(ctl("create -f -", { stdin: NODE, on }))).toMatchObject({ reason: "resource-exists" });
  });

  test.each(["replace -f -", "delete node n1", "patch node n1 -p {}", "label node n1 a=b"])(
    "says that the resource is missing: %s",
    async (words) => {
      expect(await outcomeOf(ctl(words, { stdin: NODE }))).toEqual({
        code: EXIT_FAILED,
        reason: "resource-missing",
        retry: "no",
      });
    },
  );

  test.each(["replace -f -", "apply -f -", "delete -f -"])(
    "says that the resource was changed since the version the document names: %s",
    async (words) => {
      await ctl("apply -f -", { stdin: NODE });

      const run = ctl(words, { stdin: { ...NODE, metadata: { name: "n1", resourceVersion: "1" } } });

      expect(await outcomeOf(run)).toEqual({
        code: EXIT_FAILED,
        reason: "resource-changed",
        retry: "after reading again",
      });
    },
  );

  test("reports that a resource was changed during its deletion", async () => {
    await ctl("apply -f -", { stdin: NODE });
    await ctl("apply -f -", { stdin: POOL });

    const ofNode = ctl("delete node n1", { on: racedBy(touch(KEY)) });
    expect(await outcomeOf(ofNode)).toMatchObject({ reason: "resource-changed" });
    const ofPool = ctl("delete pool blue", { on: racedBy(touch(POOL_KEY), { key: POOL_KEY }) });
    expect(await outcomeOf(ofPool)).toMatchObject({ reason: "resource-changed" });
  });

  test("reports that a pool was deleted before it could be disabled; a missing record counts as deleted", async () => {
    await ctl("apply -f -", { stdin: NODE });
    await ctl("apply -f -", { stdin: POOL });

    const ofPool = ctl("delete pool blue", { on: racedBy(remove(POOL_KEY), { key: POOL_KEY }) });
    expect(await outcomeOf(ofPool)).toMatchObject({ reason: "resource-missing" });
    expect(await ctl("delete node n1", { on: racedBy(remove(KEY)) })).toMatchObject({ code: EXIT_OK });
  });

  test("reports that a label has another value", async () => {
    await ctl("apply -f -", { stdin: { ...NODE, metadata: { name: "n1", labels: { a: "b" } } } });

    expect(await outcomeOf(ctl("label node n1 a=c"))).toMatchObject({ reason: "resource-invalid", retry: "no" });
  });
});

describe("patch", () => {
  test("is retried if reading again can help", async () => {
    await ctl("apply -f -", { stdin: NODE });

    const { code } = await ctl("label node n1 a=b", { on: racedBy(touch(KEY), { times: 3 }) });

    expect(code).toBe(EXIT_OK);
    expect((await ctl("get node n1")).stdout).toContain('"a": "b"');
  });

  test("is not retried if the resource was deleted in the meantime", async () => {
    await ctl("apply -f -", { stdin: NODE });

    const run = ctl("label node n1 a=b", { on: racedBy(remove(KEY)) });

    expect(await outcomeOf(run)).toEqual({ code: EXIT_FAILED, reason: "resource-missing", retry: "no" });
  });
});
