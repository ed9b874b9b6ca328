import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatastore } from "./open.ts";

describe("openDatastore()", () => {
  test("opens the embedded datastore at its path, and closes it when the signal fires", async () => {
    const directory = mkdtempSync(join(tmpdir(), "vt-open-"));
    const stop = new AbortController();
    const settings = { kind: "embedded", path: join(directory, "store.db") } as const;
    const store = await openDatastore(settings, { signal: stop.signal });
    const { revision } = await store.read([]);
    const watch = (async () => {
      for await (const event of store.watch("/", revision, AbortSignal.timeout(5_000))) {
        if (event.kind === "bookmark") stop.abort();
      }
    })();
    await watch;

    await expect(store.read([])).rejects.toMatchObject({ kind: "datastore-unavailable" });
    rmSync(directory, { recursive: true });
  });

  test("names the failed etcd endpoint and the stage, without its password", async () => {
    const endpoints = ["http://root:hidden-word@127.0.0.1:1"];
    const store = await openDatastore({ kind: "etcd", source: { kind: "endpoints", endpoints } });
    const failure = await store.read([]).then(
      () => undefined,
      (error: unknown) => error,
    );
    await store.close();

    expect(failure).toMatchObject({ kind: "datastore-unavailable" });
    expect(String(failure)).toContain('"http://127.0.0.1:1" failed at stage "connect"');
    expect(Bun.inspect(failure)).not.toContain("hidden-word");
  });

  test("refuses the orchestrator's datastore with a reason", async () => {
    await expect(openDatastore({ kind: "orchestrator", access: {} })).rejects.toMatchObject({ kind: "config-invalid" });
  });
});
