import { expect, test } from "bun:test";
import { openEtcdThrough } from "./etcd.ts";
import type { Transport, WatchResponse } from "./transport.ts";

const CREATED: WatchResponse = {
  revision: "7",
  changes: [],
  created: true,
  canceled: false,
  compactRevision: "0",
  cancelReason: "",
};

/** Its watch says this much, then nothing, and does not end when it is told to. */
function deafTransport(answers: readonly WatchResponse[]): Transport {
  const never = () => Promise.withResolvers<never>().promise;
  return {
    transact: never,
    authenticate: never,
    async *watch() {
      yield* answers;
      await never();
    },
    close: () => {},
  };
}

test.each([
  ["before etcd confirms it", []],
  ["after etcd has confirmed it", [CREATED]],
])("a watch that is stopped %s ends, even if its connection does not", async (_, answers) => {
  const { store } = openEtcdThrough(deafTransport(answers));
  const stop = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { kind } of store.watch("/", "7", stop.signal)) seen.push(kind);
  })();
  await Bun.sleep(0);
  stop.abort();
  await watching;

  expect(seen).toEqual(answers.map(() => "bookmark"));
});
