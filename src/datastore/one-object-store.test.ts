import { datastoreContract } from "./datastore-contract.ts";
import { openMemory } from "./memory/memory.ts";
import { MemoryTable } from "./memory/table.ts";
import { oneObjectStore } from "./one-object-store.ts";

datastoreContract(
  "a store made to commit one object at a time",
  async () => {
    const table = new MemoryTable();
    return {
      store: oneObjectStore(openMemory(table)),
      another: async () => oneObjectStore(openMemory(table)),
      forgetHistory: async () => table.forgetHistory(),
      dispose: async () => {},
    };
  },
  { atomicity: "one object" },
);
