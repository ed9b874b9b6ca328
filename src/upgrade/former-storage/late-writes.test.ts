/** Writes whose response was lost, and that arrive when the step is repeated. */
import { expect, test } from "bun:test";
import type { Datastore } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { clusterInformation } from "../../model/cluster-information.ts";
import { CLUSTER_INFORMATION } from "../../model/kinds.ts";
import { copyRecords } from "./copy-records.ts";
import { presentLock, unlockPresent } from "./lock.ts";

/** `other`: is written instead of what comes late. */
function lateStore(other?: string) {
  const memory = openMemory();
  let late: (() => Promise<unknown>) | undefined;
  let isFirst = true;
  const store: Datastore = {
    atomicity: memory.atomicity,
    read: (wanted) => memory.read(wanted),
    transact: (wanted, decide) => memory.transact(wanted, decide),
    watch: (prefix, from, signal) => memory.watch(prefix, from, signal),
    close: () => memory.close(),
    async commit(changes) {
      if (isFirst) {
        isFirst = false;
        const instead = changes.map((each) =>
          other === undefined || each.kind === "delete" ? each : { ...each, value: other },
        );
        late = () => memory.commit(instead);
        throw new Error("no response");
      }
      await late?.();
      late = undefined;
      return memory.commit(changes);
    },
  };
  return { memory, store };
}

const poolOf = (cidr: string) =>
  JSON.stringify({ kind: "IPPool", apiVersion: "vendor.org/v3", metadata: { name: "a" }, spec: { cidr } });
const POOL = { key: "/vendor/resources/v3/vendor.org/ippools/a", value: poolOf("10.0.0.0/16"), what: "IPPool a" };

const copyTo = (store: Datastore) => copyRecords([POOL], { store, prefixes: [], present: new Map(), progress() {} });

test("a copy that is there already, as it should be, is no write of another program", async () => {
  const { store } = lateStore();
  await expect(copyTo(store)).rejects.toThrow("no response");

  await copyTo(store);
});

test("a copy that another program has written otherwise stops the move", async () => {
  const { store } = lateStore(poolOf("10.9.0.0/16"));
  await expect(copyTo(store)).rejects.toThrow("no response");

  await expect(copyTo(store)).rejects.toThrow("another program has written it meanwhile");
});

test("an unlock that arrives late has not changed the lock meanwhile", async () => {
  const { memory, store } = lateStore();
  const information = clusterInformation.make({ name: "default" }, { datastoreReady: false });
  const key = CLUSTER_INFORMATION.key({ name: "default" });
  await memory.commit([{ kind: "create", key, value: clusterInformation.write(information) }]);
  await expect(unlockPresent(store)).rejects.toThrow("no response");

  await unlockPresent(store);
  expect(await presentLock(memory)).toBe("unlocked");
});
