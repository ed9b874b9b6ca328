/** What may happen to a cluster of etcd while addresses are given and taken, and how it ends. */
import { type EtcdCluster, type EtcdMember, etcdctl, leaderOf } from "../support/etcd.ts";
import type { IpamSite } from "../support/ipam-site.ts";

export interface Trouble {
  /** Flags of every member. */
  readonly flags?: readonly string[];
  /** Makes trouble, and answers what ends it. */
  begin(cluster: EtcdCluster, site: IpamSite): Promise<() => Promise<void>>;
}

const QUOTA_BYTES = 2 * 1024 * 1024;

export const TROUBLES = {
  "the leader is killed": {
    begin: async (cluster) => {
      const leader = leaderOf(cluster);
      leader.signal("SIGKILL");
      return () => leader.restart();
    },
  },
  "the leader is frozen": {
    begin: async (cluster) => {
      const leader = leaderOf(cluster);
      leader.signal("SIGSTOP");
      return async () => leader.signal("SIGCONT");
    },
  },
  "the leader is cut off": {
    begin: async (cluster) => {
      const port = portOf(cluster, leaderOf(cluster));
      setLink(port, "down");
      return async () => setLink(port, "up");
    },
  },
  "the quota is used up": {
    flags: [`--quota-backend-bytes=${QUOTA_BYTES}`],
    begin: async (cluster, site) => {
      await fillUp(site);
      return async () => makeRoom(cluster);
    },
  },
} as const satisfies Readonly<Record<string, Trouble>>;

export type TroubleName = keyof typeof TROUBLES;

/** Members stand on the switch in their order (test/support/switched-network.ts). */
function portOf(cluster: EtcdCluster, member: EtcdMember): string {
  return `port${cluster.members.indexOf(member)}`;
}

function setLink(port: string, state: "up" | "down"): void {
  const { exitCode, stderr } = Bun.spawnSync(["ip", "link", "set", port, state]);
  if (exitCode !== 0) throw new Error(`ip link set ${port} ${state}: ${stderr}`);
}

const FILLING = "/filling/";

async function fillUp({ store }: IpamSite): Promise<void> {
  const value = "x".repeat(100_000);
  for (let count = 0; count * value.length < 10 * QUOTA_BYTES; count++) {
    const isFull = await store.commit([{ kind: "put", key: `${FILLING}${count}`, value }]).then(
      () => false,
      () => true,
    );
    if (isFull) return;
  }
  throw new Error("the quota of etcd never filled up");
}

/** As an administrator would: remove, compact, defragment, disarm. */
function makeRoom({ endpoints }: EtcdCluster): void {
  const [first = ""] = endpoints;
  etcdctl(first, ["del", "--prefix", FILLING]);
  const [status] = JSON.parse(etcdctl(first, ["endpoint", "status", "-w", "json"]));
  etcdctl(first, ["compact", String(status.Status.header.revision)]);
  for (const endpoint of endpoints) etcdctl(endpoint, ["defrag"]);
  etcdctl(first, ["alarm", "disarm"]);
}
