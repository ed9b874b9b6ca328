/**
 * One of many processes that increment a counter in a shared embedded store.
 * Every increment also creates its own row in the same commit: if counter and
 * rows differ, a commit was lost or only partly written.
 */
import { openEmbedded } from "../../src/datastore/embedded/embedded.ts";

export const INCREMENT_WORKER = import.meta.path;

if (import.meta.main) {
  const [path = "", name = "", times = "1"] = process.argv.slice(2);
  await incrementTimes(path, name, Number(times));
}

async function incrementTimes(path: string, name: string, times: number): Promise<void> {
  const store = await openEmbedded(path);
  // A worker whose test was killed must not keep running.
  const limit = AbortSignal.timeout(60_000);
  for (let done = 0; done < times && !limit.aborted; ) {
    const { answers } = await store.read([{ kind: "key", key: "/counter" }]);
    const counter = answers[0]?.[0];
    const value = String(Number(counter?.value ?? "0") + 1);
    const written = await store.commit([
      counter
        ? { kind: "update", key: "/counter", value, revision: counter.revision }
        : { kind: "create", key: "/counter", value },
      { kind: "create", key: `/rows/${name}/${done}`, value },
    ]);
    if (written.ok) done += 1;
  }
  await store.close();
}
