/** A real etcd with one member inside a private host, with its data in memory. */
import { join } from "node:path";
import { fetchFromHost } from "./connectivity.ts";
import type { Host } from "./host.ts";

const ENDPOINT = "http://127.0.0.1:2379";

/** Starts it and waits until it responds; returns its endpoint, as seen in the host. It ends with the host. */
export async function startEtcdOnHost(host: Host): Promise<string> {
  const urls = ["--listen-client-urls", ENDPOINT, "--advertise-client-urls", ENDPOINT];
  host.start(["etcd", "--data-dir", join(host.directory, "etcd"), ...urls], "etcd.log");
  await fetchFromHost(host, "127.0.0.1", 2379, "/health");
  return ENDPOINT;
}
