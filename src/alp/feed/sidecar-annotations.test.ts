import { describe, expect, test } from "bun:test";
import { pollUntil } from "../../../test/support/poll.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { LocalEndpoint } from "../../policy/compile/workload-endpoints.ts";
import { SidecarAnnotations } from "./sidecar-annotations.ts";

describe("SidecarAnnotations", () => {
  test("writes the release of a sidecar that reports, once", async () => {
    const site = new Site({ web: undefined });
    site.releases.set("web", "1.2.3");
    await site.run(async () => {
      await pollUntil(() => site.written.length === 1, "the annotation");
      for (let count = 0; count < 5; count += 1) await site.change();
    });
    expect(site.written).toEqual([["web", "1.2.3"]]);
  });

  test("writes nothing if the datastore says the same, and writes again if it says something else", async () => {
    const site = new Site({ web: "1.2.3" });
    site.releases.set("web", "1.2.3");
    await site.run(async () => {
      await site.change();
      expect(site.written).toEqual([]);
      site.put("web", undefined);
      await site.change();
    });
    expect(site.written).toEqual([["web", "1.2.3"]]);
  });

  test("removes it when the sidecar has been away for ten seconds, not before", async () => {
    const site = new Site({ web: "1.2.3", other: undefined });
    await site.run(async () => {
      await site.change();
      site.now += 9_000;
      await site.change();
      expect(site.written).toEqual([]);
      site.now += 1_001;
      await site.change();
    });
    expect(site.written).toEqual([["web", undefined]]);
  });

  test("a sidecar that comes back within this time causes no write", async () => {
    const site = new Site({ web: "1.2.3" });
    await site.run(async () => {
      await site.change();
      site.now += 9_000;
      site.releases.set("web", "1.2.3");
      await site.change();
      site.releases.delete("web");
      site.now += 9_000;
      await site.change();
    });
    expect(site.written).toEqual([]);
  });

  test("a sidecar that says another release each time causes three writes, then one a minute", async () => {
    const site = new Site({ web: undefined });
    await site.run(async () => {
      for (let count = 0; count < 20; count += 1) {
        site.releases.set("web", `1.0.${count}`);
        site.put("web", undefined);
        await site.change();
      }
      expect(site.written).toHaveLength(3);
      site.now += 60_001;
      await pollUntil(() => site.written.length === 4, "the annotation");
    });
    expect(site.written.at(-1)).toEqual(["web", "1.0.19"]);
  });

  test("a pod that cannot be written is reported, does not delay the others, and is tried again later", async () => {
    const site = new Site({ broken: undefined, web: undefined });
    site.releases.set("broken", "1.2.3").set("web", "1.2.3");
    site.broken = "broken";
    await site.run(async () => {
      await pollUntil(() => site.written.length === 1, "the annotation of the other");
      expect(site.written).toEqual([["web", "1.2.3"]]);
      expect(site.problems).toEqual([expect.stringContaining("no connection")]);
      site.broken = undefined;
      site.now += 1_999;
      await site.change();
      expect(site.written).toHaveLength(1);
      site.now += 1;
      await pollUntil(() => site.written.length === 2, "the annotation");
    });
  });
});

class Site {
  readonly releases = new Map<string, string>();
  readonly written: (readonly [string, string | undefined])[] = [];
  readonly problems: string[] = [];
  readonly waits: number[] = [];
  now = 0;
  /** The pod that cannot be written. */
  broken: string | undefined;
  private readonly endpoints = new Map<string, LocalEndpoint>();
  private rounds = 0;
  private readonly annotations = new SidecarAnnotations({
    endpoints: () => {
      this.rounds += 1;
      return this.endpoints;
    },
    releases: () => this.releases,
    write: async (key, _, release) => {
      if (key === this.broken) throw new Error("no connection");
      this.written.push([key, release]);
    },
    elapsed: () => this.now,
    // The pace is not waited for, the notification is.
    wait: async (milliseconds, signal) => {
      this.waits.push(milliseconds);
      if (milliseconds > 60_000 && !signal.aborted)
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      else await Bun.sleep(1);
    },
    report: (message) => this.problems.push(message),
  });

  constructor(pods: Readonly<Record<string, string | undefined>>) {
    for (const [name, release] of Object.entries(pods)) this.put(name, release);
  }

  put(name: string, release: string | undefined): void {
    const annotations = release === undefined ? {} : { [SIDECAR_ANNOTATION]: release };
    const endpoint: WorkloadEndpoint = workloadEndpoint.make({ name, namespace: "red", annotations }, { pod: name });
    this.endpoints.set(name, { endpoint, interfaceName: name });
  }

  /** Until all that is due now has been written. */
  async change(): Promise<void> {
    const { rounds } = this;
    this.annotations.changed();
    await pollUntil(() => this.rounds >= rounds + 2 || this.waits.at(-1) === 2 ** 31 - 1, "the next round");
    await Bun.sleep(5);
  }

  async run(work: () => Promise<void>): Promise<void> {
    const stopping = new AbortController();
    const running = this.annotations.run(stopping.signal);
    await work();
    stopping.abort();
    await running;
  }
}
