import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEmbedded } from "./embedded/embedded.ts";
import { openMemory } from "./memory/memory.ts";
import { MemoryTable } from "./memory/table.ts";
import { replicaContract } from "./replica/replica-contract.ts";

replicaContract(
  "the memory store",
  async () => {
    const table = new MemoryTable();
    return {
      store: openMemory(table),
      another: async () => openMemory(table),
      forgetHistory: async () => table.forgetHistory(),
      dispose: async () => {},
    };
  },
  { histories: 20 },
);

replicaContract(
  "the embedded store",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "vt-replica-"));
    const path = join(directory, "store.db");
    return {
      store: await openEmbedded(path),
      another: () => openEmbedded(path),
      forgetHistory: async () => {
        const database = new Database(path);
        database.run("PRAGMA busy_timeout = 5000");
        database.run("DELETE FROM change; UPDATE counter SET forgotten = revision");
        database.close();
      },
      dispose: async () => rmSync(directory, { recursive: true }),
    };
  },
  { histories: 6 },
);
