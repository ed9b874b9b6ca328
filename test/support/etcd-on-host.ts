/** A real etcd with one member inside a private host, with its data in memory. */
import { join } from "node:path";
import { fetchFromHost } from "./connectivity.ts";
import type { Host } from "./host.ts";

const ENDPOINT = "http://127.0.0.1:2379";
const PEER = "http://127.0.0.1:2380";

/** Starts it and waits until it responds; returns its endpoint, as seen in the host. It ends with the host. */
export async function startEtcdOnHost(host: Host): Promise<string> {
  host.start(etcdCommand(join(host.directory, "etcd"), ENDPOINT), "etcd.log");
  await fetchFromHost(host, "127.0.0.1", 2379, "/health");
  return ENDPOINT;
}

/** A single member. Names its address for peers too: the default is localhost, which only /etc/hosts knows. */
export function etcdCommand(directory: string, endpoint: string): readonly string[] {
  return [
    ...["etcd", "--data-dir", directory],
    ...["--listen-client-urls", endpoint, "--advertise-client-urls", endpoint],
    ...["--listen-peer-urls", PEER, "--initial-advertise-peer-urls", PEER, "--initial-cluster", `default=${PEER}`],
  ];
}
