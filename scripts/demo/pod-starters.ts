/** Starts the pods of the demo: podman containers if podman can run, otherwise network namespaces that the demo attaches itself. */
import { readFileSync } from "node:fs";
import type { JsonObject } from "../../src/cni/json.ts";
import type { CniResult } from "../../src/cni/result.ts";
import { decodeResult } from "../../src/cni/result-conversion.ts";
import { type Podman, podmanProblem, usePodman } from "../../test/support/podman.ts";
import type { RuntimeAttachment } from "../../test/support/runtime-driver.ts";
import { type DemoEnvironment, NETWORK, RUNTIME_VERSION } from "./environment.ts";

export interface Pod {
  readonly name: string;
  readonly attachment: RuntimeAttachment;
  readonly addresses: readonly string[];
  readonly hostLink: string;
}

export interface PodStarter {
  /** What it starts, in the plural. */
  readonly description: string;
  start(name: string): Promise<Pod>;
  stop(pod: Pod): Promise<void>;
}

export function podStarter(demo: DemoEnvironment): PodStarter {
  return podmanProblem() === undefined ? containers(demo, usePodman(demo.host)) : namespaces(demo);
}

/** `capabilities`: the ports and rates that a runtime passes on. */
export interface NamespaceStarter extends PodStarter {
  start(name: string, capabilities?: JsonObject): Promise<Pod>;
}

export function namespaces({ host, runtime }: DemoEnvironment): NamespaceStarter {
  return {
    description: "namespaces",
    async start(name, capabilities = {}) {
      await host.must(["ip", "netns", "add", `vt-${name}`]);
      const containerId = new Bun.CryptoHasher("sha256").update(name).digest("hex");
      const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=${NETWORK};K8S_POD_NAME=${name}`;
      const attachment = { containerId, netns: `/run/netns/vt-${name}`, args, capabilities };
      return podOf(name, attachment, await runtime.add(attachment));
    },
    async stop({ name, attachment }) {
      await runtime.del(attachment);
      await host.must(["ip", "netns", "delete", `vt-${name}`]);
    },
  };
}

/** podman attaches and detaches; with libcni's cached result, CHECK and GC can be called in addition. */
function containers({ host, runtime }: DemoEnvironment, podman: Podman): PodStarter {
  return {
    description: "podman containers",
    async start(name) {
      await podman.run(name, NETWORK, ["/bin/sleep", "1000000"]);
      const { containerId, netns } = await podman.sandboxOf(name);
      const file = host.view(`/var/lib/cni/results/${NETWORK}-${containerId}-eth0`);
      const { cniArgs = [], result } = JSON.parse(readFileSync(file, "utf8")) as LibcniCache;
      const attachment = { containerId, netns, args: cniArgs.map((pair) => pair.join("=")).join(";") };
      const remembered = decodeResult(result, RUNTIME_VERSION);
      runtime.remember(attachment, remembered);
      return podOf(name, attachment, remembered);
    },
    async stop({ name, attachment }) {
      await podman.remove(name);
      runtime.forget(attachment);
    },
  };
}

interface LibcniCache {
  readonly cniArgs?: readonly (readonly [name: string, value: string])[];
  readonly result: JsonObject;
}

function podOf(name: string, attachment: RuntimeAttachment, { ips, interfaces }: CniResult): Pod {
  const addresses = ips.map(({ address }) => address.split("/")[0] ?? address);
  return { name, attachment, addresses, hostLink: interfaces.find(({ sandbox }) => !sandbox)?.name ?? "" };
}
