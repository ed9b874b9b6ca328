/** A replica for each test of a file, that ends with the test. */
import { afterEach } from "bun:test";
import type { Replica } from "../../src/datastore/replica.ts";

export interface StartedReplicas {
  /** Of the present test. */
  readonly stop: AbortController;
  /** Returns it. The next test begins when it has ended. */
  note<Kind extends Replica<unknown>>(replica: Kind): Kind;
}

/** Called once for a file, or for a group of tests. */
export function startedReplicas(): StartedReplicas {
  let stop = new AbortController();
  let started: Replica<unknown> | undefined;
  afterEach(async () => {
    stop.abort();
    await started?.ended;
    stop = new AbortController();
  });
  return {
    get stop() {
      return stop;
    },
    note(replica) {
      started = replica;
      return replica;
    },
  };
}
