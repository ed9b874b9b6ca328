/** Two candidates for one Lease of an imitated API. */
import { describe, expect, test } from "bun:test";
import type { KubeRequest, KubeResponse } from "../api.ts";
import { Elector } from "./elector.ts";

/** The Lease of the API, with its version; a PUT of another version is refused. */
class LeaseApi {
  lease: { metadata: { resourceVersion: string }; spec: Record<string, unknown> } | undefined;
  isAway = false;
  private version = 0;

  async request({ method, body = "{}" }: KubeRequest): Promise<KubeResponse> {
    if (this.isAway) throw new Error("the API server is away");
    if (method === "GET")
      return this.lease ? { status: 200, text: JSON.stringify(this.lease) } : { status: 404, text: "{}" };
    const { metadata, spec } = JSON.parse(body);
    const isRefused =
      method === "POST" ? this.lease !== undefined : metadata.resourceVersion !== this.lease?.metadata.resourceVersion;
    if (isRefused) return { status: 409, text: "{}" };
    this.version += 1;
    this.lease = { metadata: { resourceVersion: `${this.version}` }, spec };
    return { status: 200, text: JSON.stringify(this.lease) };
  }
}

/** A candidate whose clock is moved by hand: each call of `next()` lets it try once, 2 seconds after the last time. */
function candidate(api: LeaseApi, identity: string, clock: { now: number }) {
  const stop = new AbortController();
  let go = Promise.withResolvers<void>();
  let waits = Promise.withResolvers<void>();
  const logged: string[] = [];
  const elector = new Elector({
    client: api,
    namespace: "kube-system",
    name: "lease",
    identity,
    now: () => new Date(clock.now),
    elapsed: () => clock.now,
    wait: async () => {
      waits.resolve();
      await go.promise;
    },
    log: (message) => logged.push(message),
  });
  const ended = elector.run(stop.signal);
  return {
    elector,
    logged,
    waiting: () => waits.promise,
    async next() {
      waits = Promise.withResolvers();
      const { resolve } = go;
      go = Promise.withResolvers();
      resolve();
      await waits.promise;
    },
    async end() {
      stop.abort();
      go.resolve();
      await ended;
    },
  };
}

describe("the election", () => {
  test("has one winner; the other takes over when the lease is given back", async () => {
    const [api, clock] = [new LeaseApi(), { now: 0 }];
    const first = candidate(api, "first", clock);
    await first.waiting();
    const second = candidate(api, "second", clock);
    await second.waiting();
    expect([first.elector.isLeading(), second.elector.isLeading()]).toEqual([true, false]);

    await first.end();
    expect(first.elector.isLeading()).toBe(false);
    await second.next();
    expect(second.elector.isLeading()).toBe(true);
    await second.end();
  });

  test("stops the leader that cannot renew before another may take over", async () => {
    const [api, clock] = [new LeaseApi(), { now: 0 }];
    const first = candidate(api, "first", clock);
    await first.waiting();
    const second = candidate(api, "second", clock);
    await second.waiting();

    api.isAway = true;
    clock.now = 9_999;
    await first.next();
    expect(first.elector.isLeading()).toBe(true);
    clock.now = 10_000;
    expect(first.elector.isLeading()).toBe(false);
    api.isAway = false;
    clock.now = 14_999;
    await second.next();
    expect(second.elector.isLeading()).toBe(false);
    clock.now = 15_000;
    await second.next();
    expect(second.elector.isLeading()).toBe(true);
    await first.next();
    expect(first.elector.isLeading()).toBe(false);
    expect(first.logged).toEqual([
      "Acquired the lease: this replica writes from now on",
      "Cannot renew the lease: the API server is away",
      "Lost the lease: this replica does not write until it has it again",
    ]);
    await Promise.all([first.end(), second.end()]);
  });

  test("wakes up those who wait for it", async () => {
    const [api, clock] = [new LeaseApi(), { now: 0 }];
    api.isAway = true;
    const only = candidate(api, "only", clock);
    await only.waiting();
    const leading = only.elector.whenLeading(new AbortController().signal);
    api.isAway = false;
    await only.next();

    await leading;
    expect(only.elector.isLeading()).toBe(true);
    await only.end();
  });
});
