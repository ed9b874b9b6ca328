/** A private host whose network config has a policy type, its node agent, and policies in the datastore. */
import { identity } from "../../src/identity.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { type NetworkPolicySpec, networkPolicy } from "../../src/model/network-policy.ts";
import { type Agent, type AgentOptions, startAgent } from "../agent/agent.ts";
import { type Json, openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import type { StoreKind } from "../support/test-store.ts";

export interface EnforcedPod extends Pod {
  /** Of its namespace, as seen by the test. */
  readonly path: string;
  readonly addresses: readonly string[];
}

export interface EnforcedSite extends AsyncDisposable {
  readonly site: PluginSite;
  /** Starts an agent, and waits until its table is in the kernel. */
  startAgent(options?: AgentOptions): Promise<Agent>;
  put(namespace: string, name: string, spec: Partial<NetworkPolicySpec>): Promise<void>;
  makePod(namespace: string, name: string): Promise<Pod>;
  /** Runs ADD. */
  attach(pod: Pod, more?: Json): Promise<EnforcedPod>;
  table(): Promise<string>;
}

export async function openEnforcedSite(kind: StoreKind, more: Json = {}): Promise<EnforcedSite> {
  const site = await openPluginSite(kind);
  const { name, cniVersion, ...plugin } = site.config({ policy: { type: "k8s" }, ...more });
  site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
  const table = async () => (await site.host.run(["nft", `list table inet ${identity.policyTable}`])).stdout;
  return {
    site,
    table,
    async startAgent(options) {
      const agent = await startAgent(site.host, options);
      await pollUntil(async () => (await table()).includes("workloads_from"), "the agent to write its table");
      return agent;
    },
    async put(namespace, policy, spec) {
      const made = networkPolicy.make({ namespace, name: policy }, { tier: "default", ...spec });
      const key = resourceKey("networkpolicies", { namespace, name: policy });
      await site.store.put([{ kind: "put", key, value: networkPolicy.write(made) }]);
    },
    makePod: (namespace, pod) =>
      site.makePod({ args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${pod}` }),
    async attach(pod, further) {
      // Without access to the orchestrator's API a policy type would be refused for pods; their endpoints need no labels here.
      const { ips } = await site.add(pod, { config: site.config({ ...more, ...further }) });
      const addresses = ips.map(({ address }) => address.split("/")[0] ?? "");
      return { ...pod, path: site.host.view(pod.netns), addresses };
    },
    [Symbol.asyncDispose]: () => site[Symbol.asyncDispose](),
  };
}
