/**
 * Felix, Calico's node agent, in the benchmark of policy: iptables-nft and ipset, in which it is fastest. Its chains are read
 * over netlink, as tables of nftables, and so are its sets; its programs for both are used only before a measurement.
 */
import { identity } from "../../src/identity.ts";
import type { NetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { findChain, listChains, listRules } from "../../src/linux/nftables/read.ts";
import { interfaceOf, LOAD_NODE } from "../../test/support/policy-load.ts";
import type { EtcdRecord } from "./etcd-records.ts";
import { isIpsetMember } from "./ipset-member.ts";
import { ownRecord } from "./own-policy-system.ts";
import type { IsEnforced, LoadChange, LoadResource, PolicySystem } from "./policy-system.ts";

const FILTER = { family: "ip", name: "filter" } as const;
const GROUP = "projectcalico.org";

export interface FelixSettings {
  readonly program: string;
  readonly etcdEndpoint: string;
  readonly locals: number;
}

export function felixPolicySystem(
  { program, etcdEndpoint, locals }: FelixSettings,
  socket: NetlinkSocket,
): PolicySystem {
  /** The name of the set with an address. */
  const sets = new Map<string, string>();
  /** The chain of the ingress rules of a policy, by the policy's title. */
  const chains = new Map<string, string>();
  const chainOf = (title: string) => {
    const chain = chains.get(title);
    if (chain === undefined) throw new Error(`Felix has no chain of policy "${title}"`);
    return chain;
  };
  return {
    name: "Felix 3.31.0",
    daemon: {
      command: [program],
      environment: { ...SETTINGS, ETCD_ENDPOINTS: etcdEndpoint, FELIX_ETCDENDPOINTS: etcdEndpoint },
    },
    record: peerRecord,
    // One run of iptables-restore writes all chains of a table.
    isLoaded: () => findChain(socket, FILTER, workloadChain(interfaceOf(locals - 1))) !== undefined,
    prepare() {
      const loaded = listChains(socket, FILTER).filter(({ name }) => name.startsWith(workloadChain("")));
      if (loaded.length !== locals) throw new Error(`Felix has the chains of ${loaded.length} endpoints`);
      for (const [, set = "", address = ""] of printed("ipset", "save").matchAll(/^add (\S+) (\S+)/gm))
        sets.set(address, set);
      const rules = printed("iptables-nft-save", "-t", "filter");
      for (const [, chain = "", title = ""] of rules.matchAll(
        /^-A (cali-pi-\S+) .*?--comment "Policy (\S+) ingress/gm,
      )) {
        chains.set(title, chain);
      }
    },
    observe: (change) => observe(change),
    clear() {
      printed("nft", "flush ruleset");
      printed("ipset", "destroy");
    },
  };

  function observe(change: LoadChange): IsEnforced {
    switch (change.kind) {
      case "remote": {
        const address = addressOf(change.after.spec.ipNetworks);
        const set = sets.get(addressOf(change.like.spec.ipNetworks)) ?? "";
        return () => isIpsetMember(socket, set, address);
      }
      case "local": {
        const chain = workloadChain(change.after.spec.interfaceName ?? "");
        return () => findChain(socket, FILTER, chain) !== undefined;
      }
      case "policy": {
        const { name, namespace } = change.after.metadata;
        const chain = chainOf(`${namespace}/default.${name}`);
        const handles = () => listRules(socket, FILTER, chain).map(({ handle }) => handle);
        const before = handles();
        return () => {
          const now = handles();
          return now.length > 0 && !Bun.deepEquals(now, before);
        };
      }
    }
  }
}

const SETTINGS = {
  PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  FELIX_FELIXHOSTNAME: LOAD_NODE,
  DATASTORE_TYPE: "etcdv3",
  FELIX_DATASTORETYPE: "etcdv3",
  FELIX_INTERFACEPREFIX: identity.interfacePrefix,
  FELIX_IPTABLESBACKEND: "NFT",
  FELIX_NFTABLESMODE: "Disabled",
  FELIX_BPFENABLED: "false",
  FELIX_XDPENABLED: "false",
  // Built without libbpf, it cannot remove what its BPF mode could have left.
  FELIX_DebugSkipCTLBCleanup: "true",
  FELIX_IPV6SUPPORT: "false",
  FELIX_IPINIPENABLED: "false",
  FELIX_VXLANENABLED: "false",
  FELIX_USAGEREPORTINGENABLED: "false",
  FELIX_HEALTHENABLED: "false",
  FELIX_PROMETHEUSMETRICSENABLED: "false",
  FELIX_LOGFILEPATH: "none",
  FELIX_LOGSEVERITYFILE: "none",
  FELIX_LOGSEVERITYSYS: "none",
  FELIX_LOGSEVERITYSCREEN: "Warning",
};

/** The same resource under its names; a policy is named after its tier too. */
function peerRecord(resource: LoadResource): EtcdRecord {
  const { key, value } = ownRecord(resource);
  const renamed = {
    key: key.replace(identity.etcdRoot, "/calico").replace(identity.apiGroup, GROUP),
    value: value.replaceAll(identity.apiGroup, GROUP),
  };
  if (resource.kind !== "NetworkPolicy") return renamed;
  const { name } = resource.metadata;
  return {
    key: renamed.key.replace(new RegExp(`${name}$`), `default.${name}`),
    value: renamed.value.replace(`"name":"${name}"`, `"name":"default.${name}"`),
  };
}

/** Of packets to an endpoint. */
function workloadChain(interfaceName: string): string {
  return `cali-tw-${interfaceName}`;
}

function addressOf(networks: readonly string[] | undefined): string {
  return networks?.[0]?.split("/")[0] ?? "";
}

function printed(...command: readonly string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command]);
  if (exitCode !== 0) throw new Error(`"${command.join(" ")}" failed: ${stderr}`);
  return stdout.toString();
}
