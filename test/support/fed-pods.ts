/** A feed of sidecars with a compiler of policies, and directories of pods, but without a kernel. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type FeedOptions, SidecarFeed } from "../../src/alp/feed/sidecar-feed.ts";
import type { SidecarVolume, SidecarVolumes } from "../../src/alp/feed/sidecar-volumes.ts";
import { SidecarStates } from "../../src/alp/state/sidecar-states.ts";
import { SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import { changesBetween, NO_RESOURCES } from "./policy-changes.ts";
import { LOAD_NODE, policyLoad } from "./policy-load.ts";
import { temporaryDirectory } from "./temporary-directory.ts";
import { TestSidecar } from "./test-sidecar.ts";

class FakeVolumes implements SidecarVolumes {
  readonly all = new Map<string, SidecarVolume>();
  readonly recovered = new Set<string>();
  private readonly listeners = new Set<() => void>();

  follow(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  put(volume: SidecarVolume): void {
    mkdirSync(volume.directory, { recursive: true });
    this.all.set(volume.uid, volume);
    for (const listener of this.listeners) listener();
  }

  delete(uid: string): void {
    this.all.delete(uid);
    for (const listener of this.listeners) listener();
  }
}

/** Pods `pod0`, `pod1`, … are of namespaces `namespace0`, … */
export class FedPods {
  readonly volumes = new FakeVolumes();
  readonly compiler = new PolicyCompiler({ node: LOAD_NODE, hasServices: true });
  readonly feed: SidecarFeed;
  /** What the kernel was told, in order: endpoints without what their keys begin with -> releases. */
  readonly reported: Readonly<Record<string, string>>[] = [];
  readonly problems: string[] = [];
  /** Added to the clock. */
  skipped = 0;
  resources: PolicyResources = NO_RESOURCES;
  private readonly directory = temporaryDirectory("sidecars");
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;

  constructor(limits: Pick<FeedOptions, "wholeStates"> = {}) {
    this.feed = new SidecarFeed({
      ...limits,
      volumes: this.volumes,
      version: "2.0.0",
      endpoints: () => this.compiler.localEndpoints,
      states: new SidecarStates(this.compiler),
      hasPodUids: false,
      reporting: (sidecars) =>
        this.reported.push(Object.fromEntries(Array.from(sidecars, ([key, version]) => [podIn(key), version]))),
      elapsed: () => performance.now() + this.skipped,
      wait: SYSTEM_CLOCK.wait,
      report: (message) => this.problems.push(message),
    });
    this.change(policyLoad({ locals: 100, remotes: 100, policies: 100 }));
    this.running = this.feed.run(this.stopping.signal);
  }

  change(resources: PolicyResources): void {
    this.compiler.update(changesBetween(this.resources, resources));
    this.resources = resources;
    this.feed.policyChanged();
  }

  /** Returns the path of the socket. */
  addPod(index: number, user = process.getuid?.() ?? 0): string {
    const directory = join(this.directory.path, `${index}`);
    const names = { uid: `uid${index}`, namespace: `namespace${index}`, pod: `pod${index}` };
    this.volumes.put({ ...names, user, directory });
    return join(directory, "agent.sock");
  }

  /** With a sidecar of an earlier release. Returns the path of the socket. */
  addEarlierPod(index: number): string {
    const directory = join(this.directory.path, "mount", `${index}`);
    this.volumes.put({ uid: `uid${index}`, namespace: `namespace${index}`, pod: `pod${index}`, directory });
    return join(directory, "socket");
  }

  /** A sidecar that has applied the state of its pod. */
  async addSidecar(index: number): Promise<TestSidecar> {
    const sidecar = await TestSidecar.connect(this.addPod(index));
    sidecar.hello();
    await sidecar.hears(2);
    sidecar.apply();
    return sidecar;
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  async close(): Promise<void> {
    await this.stop();
    this.directory.remove();
  }
}

function podIn(key: string): string {
  return /pod\d+/.exec(key)?.[0] ?? key;
}
